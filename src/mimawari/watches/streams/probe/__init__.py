"""One look at a stream or a file: what is to be seen and heard in it, on a line of time."""
