"""Routes of the prices watch."""
