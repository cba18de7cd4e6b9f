"""Routes of the rentals watch."""
