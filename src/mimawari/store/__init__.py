"""Stores: the kernel's ports on real backends."""
