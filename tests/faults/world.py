"""The ground of the fault tests: worker processes that die, a site that counts, a judge."""

import asyncio
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

import structlog
import uvicorn
from sqlalchemy import select

from mimawari.app.http.listening import Uvicorn, listen
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.deliverer import Deliverer
from mimawari.kernel.job import End, Job, NewJob, State, Turn, Want
from mimawari.kernel.values import Event, Limit
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import Settings
from mimawari.sim.sites.counting import CountingSite
from mimawari.sites import counting
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import inbox, jobs, outbox
from mimawari.watches._template import sync
from mimawari.watches._template.models import Reading
from mimawari.watches._template.tables import metadata, notes, readings
from tests.stores import open_store

FULL = os.environ.get("MIMAWARI_FAULTS") == "full"
LEASE = "1s"
PATIENCE_SECONDS = 120.0

STEPS = ("claimed", "fetched", "inside", "committed", "acked")
Step = Callable[[str], None]


def die(at: str, by: signal.Signals) -> Step:
    """Return a step that ends or stops its own process when a step of that name is reached."""
    told: list[str] = []

    def step(name: str) -> None:
        if name == at and not told:
            told.append(name)
            os.kill(os.getpid(), by)

    return step


def go_on(_name: str) -> None:
    """Let every step pass."""


def make_watch(step: Step) -> Watch:
    """Make the watch whose jobs fetch, commit, follow up and tell, calling at every step."""

    @task("fault.read", lease=LEASE, backoff="200ms", attempts=1000, concurrency=8)
    async def read(job: Job, ctx: Context) -> None:
        step("claimed")
        await ctx.limit("fault", caller="worker")
        page = await counting.fetch_page(ctx.http, job.args["url"])
        step("fetched")
        async with ctx.commit(job) as tx:
            reading = Reading(job.args["page"], page.number, ctx.clock.now())
            await sync.save_reading(tx, job, reading)
            tx.put(NewJob(kind="fault.note", args={"parent_id": job.id}))
            tx.emit(job.args["page"], "read", {"job_id": job.id}, destination="test:")
            step("inside")
        step("committed")

    @task("fault.note", lease=LEASE, backoff="200ms", attempts=1000, concurrency=8)
    async def note(job: Job, ctx: Context) -> None:
        async with ctx.commit(job) as tx:
            await sync.save_note(tx, job)

    @task("fault.plain", lease=LEASE, backoff="200ms", attempts=1000, concurrency=8)
    async def plain(job: Job, ctx: Context) -> None:
        await ctx.limit("fault", caller="worker")
        await counting.fetch_page(ctx.http, job.args["url"])

    many = Limit("fault", count=1000, per=timedelta(seconds=1))
    return Watch(name="fault", tasks=(read, note, plain), limits=(many,))


class SteppingQueue:
    """A queue that calls a step once ends have been acknowledged."""

    def __init__(self, inner: Any, step: Step) -> None:
        self._inner = inner
        self._step = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def turn(self, ends: Sequence[End], wants: Sequence[Want], worker: str) -> Turn:
        turn: Turn = await self._inner.turn(ends, wants, worker)
        if ends:
            self._step("acked")
        return turn


class SteppingStore:
    """A store whose queue calls steps."""

    def __init__(self, inner: SqlStore, step: Step) -> None:
        self._inner = inner
        self.queue = SteppingQueue(inner.queue, step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


async def work(url: str, at: str | None, by: signal.Signals = signal.SIGKILL) -> None:
    """Run a worker until killed, by itself at a step if one is named."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    clock = RealClock()
    step = die(at, by) if at else go_on
    store: Any = SteppingStore(open_store(url, clock), step)
    async with open_ways(Settings(allow_hosts=("127.0.0.1",)), store, clock) as ways:
        watches = Watches([make_watch(step)])
        http = partial(Fetcher, ways)
        await Worker(store, clock, watches, name=f"w{os.getpid()}", http=http).run()


def _enter(main: Callable[..., Coroutine[Any, Any, None]], args: Sequence[Any]) -> None:
    asyncio.run(main(*args))


_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        *(__name__, "tests.faults.hot_world", "tests.faults.rentals_world"),
        *("tests.faults.prices_world", "tests.faults.books_world"),
        *("tests.faults.streams_world", "tests.faults.notify_world"),
    ]
)


def spawn(main: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> BaseProcess:
    """Start a process of its own."""
    process = _context.Process(target=_enter, args=(main, args), daemon=True)
    process.start()
    return process


def kill(process: BaseProcess) -> None:
    """Kill a process as a power cut does."""
    if process.pid is not None and process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def name_of(seen: Mapping[str, Any]) -> str:
    """Tell which process asked, by what its site has noted."""
    return str(seen["user_agent"]).partition("(+")[2].rstrip(")")


@asynccontextmanager
async def running_site(site: Any) -> AsyncIterator[str]:
    """Serve a site on loopback and give its address."""
    taken = listen("127.0.0.1", 0)
    host, port = taken.getsockname()
    config = uvicorn.Config(site, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    server = Uvicorn(config)
    serving = asyncio.create_task(server.serve([taken]))
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        await serving


@dataclass(frozen=True, slots=True)
class World:
    """A store with a site beside it."""

    url: str
    store: SqlStore
    site: CountingSite
    address: str

    def page(self, name: str) -> dict[str, str]:
        """Return the arguments of a job that reads a page."""
        return {"page": name, "url": f"{self.address}/page/{name}"}

    async def put(self, kind: str, count: int) -> list[str]:
        """Put jobs, each for a page of its own."""
        new = [NewJob(kind=kind, args=self.page(f"{kind}-{n}")) for n in range(count)]
        return await self.store.queue.put(new)

    async def drained(self) -> None:
        """Wait until no job is live."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.live():
                await asyncio.sleep(0.05)

    async def live(self) -> int:
        """Count the live jobs."""
        counts = await self.store.queue.counts()
        return counts[State.PENDING] + counts[State.PROCESSING]

    async def judge(self, read: Sequence[str], plain: Sequence[str] = ()) -> None:
        """Insist that every job's effects are there exactly once, and nothing else is."""
        async with self.store.read() as reader:
            effects = [row[0] for row in await reader.execute(select(readings.c.job_id))]
            followed = [row[0] for row in await reader.execute(select(notes.c.parent_id))]
            events = (await reader.execute(select(outbox.c.id, outbox.c.body))).all()
            ended = (await reader.execute(select(inbox.c.id, inbox.c.state))).all()
            live = (await reader.execute(select(jobs.c.id))).all()
        assert live == []
        assert Counter(effects) == Counter(read)
        assert Counter(followed) == Counter(read)
        assert len({event.id for event in events}) == len(events) == len(read)
        assert {row.state for row in ended} <= {State.DONE}
        assert {row.id for row in ended} >= {*read, *plain}
        assert len(ended) == 2 * len(read) + len(plain)


@asynccontextmanager
async def open_world(url: str) -> AsyncIterator[World]:
    """Make the tables, serve the site, and close both at the end."""
    clock = RealClock()
    store = open_store(url, clock)
    await upgrade(store.database)
    await store.database.run(lambda session: metadata.create_all(session.connection))
    site = CountingSite(clock)
    async with running_site(site) as address:
        try:
            yield World(url, store, site, address)
        finally:
            await store.close()


class Receiver:
    """A destination that remembers every delivery in order."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def deliver(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)


async def deliver_all(world: World) -> list[Event]:
    """Deliver all that is in the outbox."""
    receiver = Receiver()
    await Deliverer(world.store, RealClock(), {"test": receiver}).tick()
    return receiver.events
