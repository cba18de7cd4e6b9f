"""Commands of the streams watch."""
