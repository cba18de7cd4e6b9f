"""The simulated rentals site: its lists, its pages and the truth behind both."""
