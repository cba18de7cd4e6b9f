"""Routes of the hot watch."""
