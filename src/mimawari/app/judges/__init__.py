"""Judges: each runs a watch on the simulated world and compares the result with the truth."""
