"""Routes of the streams watch."""
