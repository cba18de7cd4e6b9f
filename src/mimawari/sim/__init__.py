"""The simulated world, reached over real sockets."""
