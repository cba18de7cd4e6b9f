"""The simulated market: its API, its pages and the truth behind both."""
