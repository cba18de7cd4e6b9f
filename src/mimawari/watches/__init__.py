"""Watches: what we keep of the sites, and what we decide."""

from mimawari.kernel.watch import Watch
from mimawari.notify import watch as notify
from mimawari.watches._template import watch as example
from mimawari.watches.books import watch as books
from mimawari.watches.hot import watch as hot
from mimawari.watches.prices import watch as prices
from mimawari.watches.rentals import watch as rentals
from mimawari.watches.streams import watch as streams

INSTALLED: tuple[Watch, ...] = (books, hot, prices, rentals, streams, notify)
"""The watches, and what notifies people of what they tell; a new one is one line here."""

__all__ = ["INSTALLED", "example"]
