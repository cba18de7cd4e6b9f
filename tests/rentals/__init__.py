"""Tests of the rentals watch."""
