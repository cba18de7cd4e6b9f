"""The ground of the tests of clock steps: the program under libfaketime, a world in true time."""

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2

from mimawari.app.judges import books as check_books
from mimawari.app.judges import hot, prices, rentals, streams
from mimawari.app.judges.streams_plan import Script
from mimawari.app.judges.virtual_run import list_seen
from mimawari.kernel.clock import RealClock
from mimawari.settings import DEFAULTS, Settings, names_of
from mimawari.sim.chance import chance_of
from mimawari.sim.sites.google_books.site import Books
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.sites.webhooks import KEY, Hooks
from mimawari.sim.sites.yahoo_realestate.names import AREAS
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.site import RESOLVER, Live
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books import jobs as book_jobs
from mimawari.watches.hot import franchises
from mimawari.watches.hot.models import NewIp
from mimawari.watches.prices import products
from mimawari.watches.rentals import lists
from mimawari.watches.rentals.models import MOST_ROOMS
from mimawari.watches.streams.models import Config
from tests.app.terminal import Terminal
from tests.faults.world import FULL, running_site

SEED = 5
CHECK_SECONDS = 5
API_KEY = "a-key-for-the-clock-tests"
LIBRARIES = ("/usr/lib/*/faketime/libfaketime.so.1", "/usr/lib*/faketime/libfaketime.so.1")


def find_library() -> Path:
    """Find libfaketime where Debian and others put it."""
    found = [path for one in LIBRARIES for path in Path("/").glob(one.removeprefix("/"))]
    assert found, "libfaketime is missing: run tools/servers"
    return found[0]


@dataclass(slots=True)
class Stepped:
    """The program's wall clock, which is turned while the world's goes on."""

    world: World
    address: str
    terminal: Terminal
    file: Path

    def turn(self, span: timedelta) -> None:
        """Set the wall clock so far from true time, for all processes that run and will run."""
        fresh = self.file.with_suffix(".new")
        fresh.write_text(f"{span.total_seconds():+.0f}\n")
        # A process that reads meanwhile finds the one or the other, and never half of it.
        fresh.replace(self.file)

    def variables(self) -> dict[str, str]:
        """Return the variables that put a process on the turned clock."""
        return {
            "LD_PRELOAD": str(find_library()),
            "FAKETIME_TIMESTAMP_FILE": str(self.file),
            # Read again every second: at every look at the clock it takes most of the processor.
            "FAKETIME_CACHE_DURATION": "1",
            # A step of the wall clock moves no other clock of a machine.
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Run `mimawari serve` on the turned clock and give its address; it must stop cleanly."""
        with self.terminal.serve(**self.variables()) as serving:
            # The world answers from this loop, so nothing may hold it.
            facts = await asyncio.to_thread(serving.facts)
            yield next(value for value in facts.values() if value.startswith("http://"))
            assert await asyncio.to_thread(serving.stop, signal.SIGTERM) == 0
            worse = [one for one in serving.log() if one["level"] not in {"INFO", "WARN"}]
            assert worse == [], worse

    def asked(self, part: str) -> list[Mapping[str, Any]]:
        """List what a part was asked, by its own log in true time."""
        return [one for one in list_seen(self.world) if one["part"] == part]

    def count(self, message: str) -> int:
        """Count the lines of all processes' logs with a message."""
        logs = self.terminal.data.parent.glob("serve-*.err")
        return sum(path.read_text("utf-8").count(f'"message": "{message}"') for path in logs)

    def checks(self) -> list[datetime]:
        """List when the stream's list was looked at."""
        return [
            datetime.fromisoformat(one["at"])
            for one in self.asked("live")
            if one["path"].endswith(".m3u8") and "master" not in one["path"]
        ]

    async def more_checks(self, count: int, seconds: float) -> None:
        """Insist that the stream is looked at so many times more, within a time."""
        begun = len(self.checks())
        async with asyncio.timeout(seconds):
            while len(self.checks()) < begun + count:
                await asyncio.sleep(0.1)


async def responds(address: str) -> None:
    """Insist that the API answers soon, with and without a key."""
    async with httpx2.AsyncClient(base_url=address, timeout=10) as client:
        for path in ("/healthz", "/readyz", "/api/jobs"):
            response = await client.get(path, headers={"X-API-Key": API_KEY})
            assert response.status_code == 200, (path, response.text)


def settings_for(address: str, data: Path) -> Settings:
    """Return settings that lead to the world."""
    host = address.removeprefix("http://")
    given = {
        "data": data,
        "allow_hosts": (host,),
        "mercari_url": address,
        "mercari_api_url": address,
        "rentals_url": address,
        "google_books_url": address,
        "streams_resolver_url": f"{address}{RESOLVER}",
    }
    return DEFAULTS.model_copy(update=given)


def variables_of(settings: Settings) -> dict[str, str | bytes]:
    """Write the settings that lead to the world as variables."""
    names = ("mercari_url", "mercari_api_url", "rentals_url", "google_books_url")
    given = {name: str(getattr(settings, name)) for name in (*names, "streams_resolver_url")}
    given["allow_hosts"] = ",".join(settings.allow_hosts)
    written: dict[str, str | bytes] = {names_of(name)[0]: value for name, value in given.items()}
    keys = {"API_KEY": API_KEY, "WEBHOOK_SIGNING_KEY": KEY, "GOOGLE_BOOKS_API_KEY": "key"}
    return {**written, **keys}


def make_script(now: datetime) -> Script:
    """Plan a stream on which nothing is wrong."""
    programme = Programme(
        video_id="clock-00001",
        title="時計",
        starts_at=now - timedelta(minutes=1),
        seconds=None,
        segment_seconds=2.0,
    )
    config = Config(check_interval_sec=CHECK_SECONDS)
    return Script(programme=programme, config=config, holds=(), errors=())


async def add_targets(store: SqlStore, settings: Settings, books: Books, script: Script) -> None:
    """Have something watched by every watch; in the short run a stream alone."""
    now = RealClock().now()
    await streams.add_monitors(store, settings.rentals_url, [script], now)
    if not FULL:
        return
    (word,) = hot.list_keywords(1)
    product = prices.SETTINGS[0]
    (search, *_) = check_books.choose_searches(chance_of("clock", SEED), books)
    async with store.edit() as tx:
        await franchises.add_ips(tx, [NewIp(name=word, keyword=word)], settings, now)
        await products.add_product(tx, product.keyword, product, settings, now)
        url = f"{settings.rentals_url}/rent/search/{AREAS[0].path}/"
        await lists.add_list(tx, url, MOST_ROOMS, rentals.EVERY, settings, now)
        await book_jobs.add_job(tx, search, settings, now)


@asynccontextmanager
async def open_stepped(folder: Path) -> AsyncIterator[Stepped]:
    """Serve the world in true time, and make what the program watches in it."""
    clock = RealClock()
    books, live = Books(clock, SEED), Live(clock, SEED, has_catalogue=False)
    script = make_script(clock.now())
    live.put(script.programme)
    parts = (MarketSite(clock, SEED), Rentals(clock, SEED), books, live, Hooks(clock))
    world = World(clock, parts, SEED)
    async with running_site(world) as address:
        data = folder / "data"
        data.mkdir(parents=True)
        settings = settings_for(address, data)
        store = SqlStore(settings.database, clock)
        await upgrade(store.database)
        await add_targets(store, settings, books, script)
        await store.close()
        terminal = Terminal(data, variables_of(settings))
        stepped = Stepped(world, address, terminal, folder / "clock")
        stepped.turn(timedelta(0))
        yield stepped
