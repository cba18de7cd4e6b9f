"""Mimawari: makes the rounds of public web sources and tells what changed."""

__version__ = "0.1.0"
