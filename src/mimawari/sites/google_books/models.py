"""What Google Books is asked for, and what it says."""

import re
from dataclasses import dataclass
from urllib.parse import urlencode

from mimawari.errors import BadInput
from mimawari.sites.contract import Refused
from mimawari.text import clean

MOST_RESULTS = 40
MOST_START = 1_000_000
MOST_QUERY = 2000
PRINT_TYPES = ("all", "books", "magazines")
ORDERS = ("relevance", "newest")

_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,8})?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What to ask for; refused if the API would answer it with an error."""

    q: str
    start_index: int = 0
    max_results: int = MOST_RESULTS
    print_type: str | None = None
    lang_restrict: str | None = None
    order_by: str | None = None

    def __post_init__(self) -> None:
        """Refuse values that the API does not know."""
        if not self.q.strip() or len(self.q) > MOST_QUERY:
            raise BadInput(f"a query has 1 to {MOST_QUERY} characters")
        if not 0 <= self.start_index <= MOST_START:
            raise BadInput(f"start_index is {self.start_index}; give 0 to {MOST_START}")
        if not 1 <= self.max_results <= MOST_RESULTS:
            raise BadInput(f"max_results is {self.max_results}; give 1 to {MOST_RESULTS}")
        if self.print_type not in (None, *PRINT_TYPES):
            raise BadInput(f"print_type is {self.print_type!r}; give {', '.join(PRINT_TYPES)}")
        if self.order_by not in (None, *ORDERS):
            raise BadInput(f"order_by is {self.order_by!r}; give {' or '.join(ORDERS)}")
        if self.lang_restrict is not None and not _LANGUAGE.fullmatch(self.lang_restrict):
            raise BadInput(f"lang_restrict is {self.lang_restrict!r}; give a code such as ja")

    def encode(self) -> str:
        """Return the query as it stands in an address."""
        named = {
            "q": clean(self.q),
            "startIndex": self.start_index,
            "maxResults": self.max_results,
            "printType": self.print_type,
            "langRestrict": self.lang_restrict,
            "orderBy": self.order_by,
        }
        return urlencode({name: value for name, value in named.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A book; `published` is a year, a month or a day, as exact as the source knows it."""

    id: str
    title: str
    subtitle: str | None
    authors: tuple[str, ...]
    publisher: str | None
    published: str | None
    isbn13: str | None
    language: str | None
    categories: tuple[str, ...]
    description: str | None
    page_count: int | None
    thumbnail: str | None
    info_link: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumesPage:
    """The volumes of a reply, used and refused; only a reply without any is sure to be the end."""

    total_items: int | None
    volumes: tuple[Volume, ...]
    refused: tuple[Refused, ...]
