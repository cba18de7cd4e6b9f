"""Requests and responses of the streams watch, as programs send and read them."""
