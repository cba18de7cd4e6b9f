"""Commands of the books watch."""
