"""Watches: what we keep of the sites, and what we decide."""

from mimawari.kernel.watch import Watch
from mimawari.watches._template import watch as example
from mimawari.watches.hot import watch as hot
from mimawari.watches.prices import watch as prices
from mimawari.watches.rentals import watch as rentals

INSTALLED: tuple[Watch, ...] = (hot, prices, rentals)
"""The watches; a new one is one line here."""

__all__ = ["INSTALLED", "example"]
