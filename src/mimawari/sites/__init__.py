"""Sites: fetch and parse, no database."""
