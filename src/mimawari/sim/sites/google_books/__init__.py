"""The simulated catalogue of books behind its API."""
