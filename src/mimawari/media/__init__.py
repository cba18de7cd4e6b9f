"""Media: lists of segments, and what is to be seen and heard in one; no network, no database."""
