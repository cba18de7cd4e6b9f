"""The simulated sites: each a part of the world that stands in for a real one."""
