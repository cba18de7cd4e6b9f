"""Benchmarks of the kernel against its peers and against a raw floor."""
