"""Commands of the rentals watch."""
