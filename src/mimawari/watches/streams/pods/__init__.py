"""Monitors in pods of Kubernetes: which pod runs which, and what becomes of them."""
