"""Google Books: volumes that match a query."""

from mimawari.sites.google_books.client import SITE, QuotaUsedUp, fetch_volumes
from mimawari.sites.google_books.isbn import parse_isbn13
from mimawari.sites.google_books.models import Query, Volume, VolumesPage
from mimawari.sites.google_books.replies import parse_volumes

__all__ = [
    "SITE",
    "Query",
    "QuotaUsedUp",
    "Volume",
    "VolumesPage",
    "fetch_volumes",
    "parse_isbn13",
    "parse_volumes",
]
