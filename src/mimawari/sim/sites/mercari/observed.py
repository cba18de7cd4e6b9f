"""What somebody who searched the market could have seen, from its truth and its log."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.api import cut
from mimawari.sim.sites.mercari.items import fold
from mimawari.sim.sites.mercari.lives import Event, Status, What
from mimawari.sim.sites.mercari.market import SOLD, Market, Wanted

Span = tuple[datetime, datetime]


class Moments(VirtualClock):
    """A clock that is at whatever moment is looked at."""

    def __init__(self, at: datetime) -> None:
        super().__init__(at)
        self.at = at

    def now(self) -> datetime:
        """Return the moment."""
        return self.at


class Looks:
    """Every look at the market, made again: what came and went on the pages asked for.

    A look is one walk over the pages on sale and those sold; the first one only learns.
    """

    def __init__(self, seed: int, searches: Sequence[Mapping[str, Any]]) -> None:
        self.counts: dict[str, list[int]] = {}
        self.times: dict[str, list[datetime]] = {}
        self._known: dict[str, dict[str, bool]] = {}
        if not searches:
            return
        clock = Moments(datetime.fromisoformat(searches[0]["at"]))
        market = Market(clock, seed)
        for seen in searches:
            clock.at = datetime.fromisoformat(seen["at"])
            self._read(market, clock.at, **seen["searched"])

    @property
    def total(self) -> int:
        """How many looks there were."""
        return sum(map(len, self.times.values()))

    def _read(
        self, market: Market, at: datetime, *, keyword: str, statuses: list[str], page: int
    ) -> None:
        wanted = Wanted(keyword=keyword, statuses=frozenset(map(Status, statuses)))
        times = self.times.setdefault(keyword, [])
        if page == 0 and Status.ON_SALE in wanted.statuses:
            times.append(at)
        times[-1] = at
        known = self._known.setdefault(keyword, {})
        counts = self.counts.setdefault(keyword, [0, 0])
        for item in cut(market.search(wanted), keyword, page).items:
            was_sold, is_sold = known.get(item.goods.id), item.status in SOLD
            if len(times) > 1:
                counts[0] += was_sold is None and not is_sold
                counts[1] += is_sold and not was_sold
            known[item.goods.id] = is_sold

    def between(self, keyword: str, start: datetime, end: datetime) -> Span:
        """Tell from which look on, and up to which, a search's counts of a span reach."""
        times = self.times[keyword]
        before = [at for at in times if at < start] or times[:1]
        inside = [at for at in times if at < end] or times[:1]
        return before[-1], inside[-1]


def count_events(events: Sequence[Event], keyword: str, span: Span) -> tuple[int, int]:
    """Count what was really listed and bought of a search in a span."""
    words, start, end = fold(keyword).split(), span[0].timestamp(), span[1].timestamp()
    mine = [
        one.what
        for one in events
        if start < one.at <= end and all(word in one.item.goods.words for word in words)
    ]
    return mine.count(What.LISTED), mine.count(What.BOUGHT)
