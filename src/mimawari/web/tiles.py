"""The tiles of the overview: a few figures a watch, each from a query that costs little."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from sqlalchemy import Select, func, or_, select

from mimawari.kernel.job import State
from mimawari.watches.books import quota
from mimawari.watches.books.tables import books
from mimawari.watches.books.tables import jobs as book_jobs
from mimawari.watches.hot.api.boards import LeaderboardOut, show_leaderboard
from mimawari.watches.hot.schemas.requests import BoardAsked
from mimawari.watches.hot.tables import alerts as hot_alerts
from mimawari.watches.hot.tables import ips
from mimawari.watches.prices import queries as price_reads
from mimawari.watches.prices.tables import products
from mimawari.watches.rentals import queue_status
from mimawari.watches.rentals.queries import count_queue
from mimawari.watches.streams.models import ACTIVE, Status
from mimawari.watches.streams.tables import monitors, states
from mimawari.web.visit import Visit

WEEK = timedelta(days=7)
_WELL = ("ok", "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """What the overview says of a watch: the figure that matters most, and some more."""

    watch: str
    big: str
    about: str
    figures: tuple[tuple[str, str], ...]
    """What each is called, and what it is."""
    is_bad: bool = False


async def list_tiles(visit: Visit) -> list[Tile]:
    """Make the tiles of the watches that are installed."""
    names = [watch.name for watch in visit.system.watches.all]
    return [await make(visit) for name, make in TILES.items() if name in names]


async def _count(visit: Visit, *queries: Select[Any]) -> list[int]:
    """Count several things in one query."""
    together = select(*(query.scalar_subquery() for query in queries))
    async with visit.system.store.read() as reader:
        return [int(value) for value in (await reader.execute(together)).one()]


async def _make_hot(visit: Visit) -> Tile:
    # The board is kept for a while, which reading it anew would not be.
    board = await show_leaderboard(visit.system, BoardAsked(limit=1))
    first = board.entries[0].name if isinstance(board, LeaderboardOut) and board.entries else "–"
    active, opened = await _count(
        visit,
        select(func.count()).select_from(ips).where(ips.c.active),
        select(func.count()).select_from(hot_alerts).where(hot_alerts.c.open_key.is_not(None)),
    )
    return Tile(
        watch="hot",
        big=first,
        about=visit.words("tile.leader"),
        figures=(
            (visit.words("tile.ips"), f"{active:,}"),
            (visit.words("tile.alerts"), f"{opened:,}"),
        ),
    )


async def _make_prices(visit: Visit) -> Tile:
    [count] = await _count(visit, select(func.count()).select_from(products))
    wanted = price_reads.want_alerts(visit.system, None, is_open=True)
    async with visit.system.store.read() as reader:
        opened = await price_reads.count_alerts(reader, wanted)
    return Tile(
        watch="prices",
        big=f"{opened:,}",
        about=visit.words("tile.bargains"),
        figures=((visit.words("tile.products"), f"{count:,}"),),
    )


async def _make_rentals(visit: Visit) -> Tile:
    counts = await count_queue(visit.system)
    gauge = await queue_status.find_gauge(visit.system)
    is_open = gauge.breaker.state == "open"
    next_at = gauge.breaker.until if is_open else gauge.next_at
    return Tile(
        watch="rentals",
        big=f"{gauge.used} / {gauge.details_per_hour}",
        about=visit.words("tile.details"),
        figures=(
            (visit.words("tile.waiting"), f"{counts[State.PENDING]:,}"),
            (
                visit.words("tile.next"),
                visit.ago(next_at) if next_at else visit.words("queue.free"),
            ),
        ),
        is_bad=gauge.breaker.state != "closed",
    )


async def _make_books(visit: Visit) -> Tile:
    now = visit.system.clock.now()
    count, new = await _count(
        visit,
        select(func.count()).select_from(book_jobs),
        select(func.count()).select_from(books).where(books.c.first_seen_at >= now - WEEK),
    )
    async with visit.system.store.read() as reader:
        usage = await quota.find_usage(reader, visit.system.settings, now)
    return Tile(
        watch="books",
        big=f"{new:,}",
        about=visit.words("tile.new_books"),
        figures=(
            (visit.words("tile.jobs"), f"{count:,}"),
            (visit.words("tile.calls"), f"{usage.calls + usage.reserved:,} / {usage.limit:,}"),
        ),
    )


async def _make_streams(visit: Visit) -> Tile:
    by_status = select(monitors.c.status, func.count()).where(monitors.c.status.in_(ACTIVE))
    both = monitors.join(states, states.c.monitor_id == monitors.c.id)
    is_bad = or_(states.c.video.not_in(_WELL), states.c.audio.not_in(_WELL))
    bad = select(func.count()).select_from(both).where(monitors.c.status.in_(ACTIVE), is_bad)
    async with visit.system.store.read() as reader:
        rows = await reader.execute(by_status.group_by(monitors.c.status))
        counts = {row[0]: row[1] for row in rows}
        alerted: int = (await reader.execute(bad)).scalar_one()
    waiting = counts.get(Status.WAITING, 0) + counts.get(Status.INITIALIZING, 0)
    return Tile(
        watch="streams",
        big=f"{counts.get(Status.MONITORING, 0):,}",
        about=visit.words("tile.monitoring"),
        figures=(
            (visit.words("tile.awaited"), f"{waiting:,}"),
            (visit.words("tile.in_alert"), f"{alerted:,}"),
        ),
        is_bad=alerted > 0,
    )


TILES: Mapping[str, Callable[[Visit], Awaitable[Tile]]] = {
    "hot": _make_hot,
    "prices": _make_prices,
    "rentals": _make_rentals,
    "books": _make_books,
    "streams": _make_streams,
}
