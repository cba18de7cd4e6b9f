"""The demo: all watches on the simulated world, with thirty days of history."""
