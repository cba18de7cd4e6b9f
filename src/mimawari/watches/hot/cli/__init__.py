"""Commands of the hot watch."""
