"""Lists of any length, a page at a time: one page for a program, all of them for a file."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

R = TypeVar("R")
P = TypeVar("P")

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[R, P]):
    """A list that goes on from any place in it."""

    fetch: Callable[[P, int], Awaitable[Sequence[R]]]
    start: P
    place_of: Callable[[R], P]


async def find_page(listing: Listing[R, P], most: int) -> tuple[list[R], bool]:
    """Return one page, and whether there is another one after it."""
    # One more than is wanted tells whether there is more, so that no page is empty.
    rows = list(await listing.fetch(listing.start, most + 1))
    return rows[:most], len(rows) > most


async def walk(listing: Listing[R, P], most: int | None) -> AsyncIterator[Sequence[R]]:
    """Yield the list in pieces, to its end or up to so many rows; never more in memory at once."""
    place, left = listing.start, most
    while left is None or left > 0:
        count = BATCH if left is None else min(BATCH, left)
        rows = await listing.fetch(place, count)
        yield rows
        if len(rows) < count:
            return
        place = listing.place_of(rows[-1])
        left = None if left is None else left - len(rows)
