"""Walks over the pages of a search, each of which may fail alone."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Protocol

from mimawari.errors import Invalid, Transient
from mimawari.sites.mercari.models import Detail, Query, SearchPage, following


class Market(Protocol):
    """Mercari, however it is asked."""

    async def search_page(self, query: Query, token: str = "") -> SearchPage:
        """Fetch one page of a search; the empty token asks for the first."""
        ...

    async def item(self, item_id: str) -> Detail:
        """Fetch an item's own page; one that is no more raises Gone."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of one page of a walk: the page, or why there is none."""

    number: int
    page: SearchPage | None = None
    error: Transient | Invalid | None = None
    capped: bool = False
    """The walk ends here because it was to go no further, though the site has more."""

    @property
    def reason(self) -> str:
        """Why there is no page; empty if there is one."""
        return str(self.error or "")


async def walk(market: Market, query: Query, pages: int) -> AsyncIterator[Result]:
    """Fetch the pages of a search in order, as many as there are and no more than `pages`.

    A page that fails is a result too, and the walk goes on unless the site asked for a pause.
    A block and a wait end it by raising.
    """
    token: str | None = ""
    asked: set[str] = set()
    for number in range(1, pages + 1):
        if token is None or token in asked:
            return
        asked.add(token)
        result, token = await _step(market, query, number, token)
        yield replace(result, capped=number == pages and token is not None)


async def _step(market: Market, query: Query, number: int, token: str) -> tuple[Result, str | None]:
    """Fetch one page; tell the token of the next, None if there is none to go to."""
    try:
        page = await market.search_page(query, token)
    except (Transient, Invalid) as error:
        has_to_wait = isinstance(error, Transient) and error.until is not None
        return Result(number=number, error=error), None if has_to_wait else following(token)
    return Result(number=number, page=page), None if page.is_empty else page.next_token or None
