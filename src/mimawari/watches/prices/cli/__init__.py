"""Commands of the prices watch."""
