"""What every page leads to."""

NAV = (
    ("/", "nav.overview"),
    ("/hot", "nav.hot"),
    ("/prices", "nav.prices"),
    ("/rentals", "nav.rentals"),
    ("/books", "nav.books"),
    ("/streams", "nav.streams"),
    ("/queue", "nav.queue"),
    ("/notify", "nav.notify"),
    ("/deliveries", "nav.deliveries"),
    ("/why", "nav.why"),
    ("/settings", "nav.settings"),
)
"""Where it is, and the word for it."""
