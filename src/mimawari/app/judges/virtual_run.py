"""Runs a watch on the simulated world in virtual time, so that its truth can judge it."""

import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import httpx2

from mimawari.app.ops import open_store, upgrade_tables
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import Destination, in_the_log
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watch, Watches
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.chance import Chance
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.link import NearLink

START = datetime(2026, 6, 1, 15, tzinfo=UTC)
DAY = timedelta(days=1)
PAGE = 10_000
EXAMPLES = 5

Progress = Callable[[float], None]
"""Is told how much of the time has passed, from 0 to 1."""
Order = tuple[datetime, dict[str, Any]]
"""Something that goes wrong, and when it begins to."""
OpenDestinations = Callable[
    [SqlStore, VirtualClock, Settings, httpx2.AsyncBaseTransport], Mapping[str, Destination]
]
"""Opens where events go to, by a way that leads into the world."""


class Differing(Protocol):
    """Something that is not as the truth, of a sort."""

    @property
    def what(self) -> str:
        """The sort."""


D = TypeVar("D", bound=Differing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A watch with a store of its own, and rounds that pass time for it."""

    settings: Settings
    store: SqlStore
    rounds: Rounds

    async def pass_days(
        self, span: timedelta, step: timedelta, progress: Progress
    ) -> AsyncIterator[datetime]:
        """Let time pass, and give the time before each step and at the end."""
        clock = self.rounds.clock
        end = clock.now() + span
        while clock.now() < end:
            yield clock.now()
            await self.rounds.pass_time(min(step, end - clock.now()))
            progress(1 - (end - clock.now()) / span)
        yield clock.now()


@asynccontextmanager
async def open_ground(
    world: World,
    clock: VirtualClock,
    watch: Watch,
    given: Mapping[str, Any],
    destinations: OpenDestinations | None = None,
) -> AsyncIterator[Ground]:
    """Open a watch that asks the world and nobody else, with some settings of its own."""
    inside = httpx2.ASGITransport(app=world)
    with tempfile.TemporaryDirectory(prefix="mimawari-check-", dir=_fast_folder()) as folder:
        settings = DEFAULTS.model_copy(update={"data": Path(folder), **given})
        store = open_store(settings, clock)
        # Threads are for those who must not wait; here time itself does.
        store.database.link = NearLink(store.database.link.engine)
        try:
            await upgrade_tables(settings, store)
            others = destinations(store, clock, settings, inside) if destinations else {}
            async with open_ways(settings, store, clock, inside=inside) as ways:
                rounds = Rounds(
                    store,
                    clock,
                    Watches([watch], settings),
                    {**in_the_log(), **others},
                    partial(Fetcher, ways),
                )
                yield Ground(settings=settings, store=store, rounds=rounds)
        finally:
            await store.close()


def list_seen(world: World, **query: str) -> Iterator[Mapping[str, Any]]:
    """List every request that the world has seen, from its own log."""
    after = "0"
    while True:
        found = world.log.list({**query, "after": after, "limit": str(PAGE)})
        yield from found["seen"]
        if not found["seen"]:
            return
        after = str(found["next"])


def spread_orders(
    chance: Chance,
    span: timedelta,
    draw: Callable[[Chance], Iterable[dict[str, Any]]],
    within: timedelta = DAY,
) -> list[Order]:
    """Draw orders for every day of a time, each at some time of the day's first part."""
    planned: list[Order] = []
    for day in range(-(-span // DAY)):
        start, length = START + day * DAY, min(within, span - day * DAY)
        planned += [(start + length * chance.random(), order) for order in draw(chance)]
    return sorted(planned, key=lambda order: order[0])


def pick_examples(differing: Sequence[D]) -> list[D]:
    """Pick the first few differences of each sort."""
    picked: list[D] = []
    for what in dict.fromkeys(one.what for one in differing):
        picked += [one for one in differing if one.what == what][:EXAMPLES]
    return picked


def _fast_folder() -> str | None:
    """Prefer memory: what is kept is judged and thrown away."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - a private folder in it
