"""Commands that belong to no watch."""
