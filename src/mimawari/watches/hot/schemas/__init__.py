"""Requests and responses of the hot watch, as programs send and read them."""
