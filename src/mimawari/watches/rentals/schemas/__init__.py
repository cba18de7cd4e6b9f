"""Requests and responses of the rentals watch, as programs send and read them."""
