"""Requests and responses of the prices watch, as programs send and read them."""
