"""Tests of the books watch."""
