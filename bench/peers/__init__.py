"""One small program per peer, each measuring the peer's own fastest documented way."""
