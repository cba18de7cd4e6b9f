"""The edges: API, command line and the one process that runs it all."""
