"""Tests of the streams watch."""
