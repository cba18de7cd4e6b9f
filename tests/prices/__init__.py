"""Tests of the prices watch."""
