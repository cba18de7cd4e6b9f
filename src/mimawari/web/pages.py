"""All pages, in the order in which they are named."""

from mimawari.web import (
    books,
    deliveries,
    hot,
    notify,
    overview,
    prices,
    queue,
    rentals,
    sessions,
    settings,
    streams,
    why,
)
from mimawari.web.site import Listed

PAGES: tuple[Listed, ...] = (
    *overview.PAGES,
    *hot.PAGES,
    *prices.PAGES,
    *rentals.PAGES,
    *books.PAGES,
    *streams.PAGES,
    *queue.PAGES,
    *notify.PAGES,
    *deliveries.PAGES,
    *why.PAGES,
    *settings.PAGES,
    *sessions.PAGES,
)
