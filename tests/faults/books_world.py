"""The ground of the books watch's fault tests: processes that collect and mail, and die."""

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from email import message_from_bytes
from email.policy import SMTP
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Lock
from typing import Any

import structlog
from aiosmtpd.smtp import Envelope, Session
from pydantic import SecretStr
from sqlalchemy import event, select
from starlette.requests import Request
from starlette.responses import Response

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import Deliverer, in_the_log
from mimawari.kernel.ports import Clock
from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.sites.google_books.site import Books
from mimawari.store.redis import RedisStore
from mimawari.store.redis.link import RedisLink
from mimawari.store.sql import SqlStore
from mimawari.store.sql.commit import SqlTx
from mimawari.watches.books import watch
from mimawari.watches.books.jobs import PAGE
from mimawari.watches.books.mailing import MailState
from mimawari.watches.books.tables import books, cursors, job_books, jobs, mails, runs, usage
from tests.faults.hot_world import ShiftedClock
from tests.faults.world import kill
from tests.net.post_office import SENDER, Office, open_office
from tests.stores import BESIDE, open_store

SECOND = timedelta(seconds=1)
BETWEEN_CALLS = SECOND / 5
"""So long apart the catalogue takes calls to be, which refuses more than ten in a second."""
OURS = frozenset({"first_job", "first_seen_at", "last_seen_at", "info_link"})
RUN = ("pages", "volumes", "refused", "collected", "next_index", "total_items", "stop_reason")
_ISBN = re.compile(r"^ISBN ([0-9]{13})\r?$", re.MULTILINE)

OpenStore = Callable[[str, Clock], SqlStore]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where everything is, and how many calls a day there are."""

    url: str
    address: str
    mail_port: int
    calls: int
    data: Path

    @property
    def settings(self) -> Settings:
        """The settings that lead there."""
        given = {
            "google_books_url": self.address,
            "allow_hosts": (self.address.removeprefix("http://"),),
            "books_key": SecretStr("demo"),
            "books_calls": self.calls,
            "smtp_host": "127.0.0.1",
            "smtp_port": self.mail_port,
            "smtp_security": "none",
            "mail_from": SENDER,
            "data": self.data,
        }
        return DEFAULTS.model_copy(update=given)


class StandingBooks(Books):
    """A catalogue whose time passes by its calls alone, so that no book appears meanwhile.

    Who is told to dies there: after so many pages, when a page was read and nobody has it yet.
    """

    doomed: BaseProcess | None = None
    pages_left = 0

    def __init__(self, clock: VirtualClock, seed: int) -> None:
        super().__init__(clock, seed, spells=False)
        self._time = clock

    async def answer(self, request: Request) -> Response:
        """Answer a little later than the call before."""
        await self._time.advance(BETWEEN_CALLS)
        answer = await super().answer(request)
        self.pages_left -= 1
        if self.doomed is not None and self.pages_left <= 0:
            doomed, self.doomed = self.doomed, None
            kill(doomed)
        return answer


class DeadlyOffice(Office):
    """A mail server, and who is told to dies there: when it has a mail and has not said so yet."""

    doomed: BaseProcess | None = None

    async def handle_DATA(  # noqa: N802 - the server's own name
        self, server: Any, session: Session, envelope: Envelope
    ) -> str:
        """Take a mail."""
        reply = await super().handle_DATA(server, session, envelope)
        if self.doomed is not None:
            doomed, self.doomed = self.doomed, None
            kill(doomed)
        return reply


def open_deadly_office() -> AbstractAsyncContextManager[Office]:
    """Run a mail server at which one may die."""
    return open_office(office=DeadlyOffice())


def name_mail(mail_id: str) -> str:
    """Name a mail as its server sees it."""
    return f"<books-{mail_id}@example.org>"


class Fate:
    """Kills this process just before its so many-th statement or COMMIT."""

    def __init__(self, store: SqlStore, number: int) -> None:
        self._left = number
        self._lock = Lock()
        engine: Any = store.database.link.engine
        event.listen(engine, "before_cursor_execute", self._go_on)
        event.listen(engine, "commit", self._go_on)

    def _go_on(self, *_given: Any) -> None:
        with self._lock:
            self._left -= 1
            if self._left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


class _Deadly(SqlStore):
    """Kills this process once it is kept that a mail is being ended, before its last line."""

    def edit(self) -> AbstractAsyncContextManager[SqlTx]:
        """Open a transaction, after which one may be dead."""
        return self._edit_and_die()

    @asynccontextmanager
    async def _edit_and_die(self) -> AsyncIterator[SqlTx]:
        async with super().edit() as tx:
            yield tx
        async with self.read() as reader:
            ending = select(mails.c.id).where(mails.c.state == MailState.ENDING)
            if (await reader.execute(ending)).first():
                os.kill(os.getpid(), signal.SIGKILL)


class _DeadlyRedis(_Deadly, RedisStore):
    """The same where Redis finds the work."""


def open_deadly_store(url: str, clock: Clock) -> SqlStore:
    """Open a store in which one dies."""
    database, _, redis = url.partition(BESIDE)
    return _DeadlyRedis(database, RedisLink(redis), clock) if redis else _Deadly(database, clock)


def hasty() -> Watch:
    """Return the watch without its pauses, and with jobs that outlive any number of deaths."""
    tasks = tuple(replace(one, attempts=1000) for one in watch.tasks)
    return replace(watch, tasks=tasks, limits=(Limit(PAGE, count=1000, per=SECOND),))


async def work_books(
    place: Place, shift: timedelta, number: int | None, opened: OpenStore = open_store
) -> None:
    """Collect, mail and deliver until killed, by itself or by another."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    clock = ShiftedClock(shift)
    store = opened(place.url, clock)
    if number is not None:
        Fate(store, number)
    async with open_ways(place.settings, store, clock) as ways:
        watches = Watches([hasty()], place.settings)
        http = partial(Fetcher, ways)
        worker = Worker(store, clock, watches, name=f"w{os.getpid()}", http=http)
        deliverer = Deliverer(
            store, clock, {**in_the_log(), **watches.open_destinations(store, clock)}
        )
        await asyncio.gather(worker.run(), deliverer.run())


@dataclass(frozen=True, slots=True, kw_only=True)
class Got:
    """A mail as the server has it: to whom, by which id, and of which books."""

    recipients: tuple[str, ...]
    message_id: str
    isbns: tuple[str, ...]


def list_got(office: Office) -> list[Got]:
    """List the mails that the server took, read as those who get them do."""
    found = []
    for taken in office.mails:
        message = message_from_bytes(taken.content, policy=SMTP)
        body = message.get_body(("plain",))
        assert body is not None
        found.append(
            Got(
                recipients=tuple(taken.recipients),
                message_id=str(message["Message-ID"]),
                isbns=tuple(_ISBN.findall(body.get_content())),
            )
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What the watch keeps, but for when and in whose name it came."""

    books: dict[str, dict[str, Any]]
    found: dict[str, list[str]]
    """The books of each job, in the order in which they were shown."""
    cursors: dict[str, tuple[int, bool]]
    runs: Counter[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """The mails by their state, and the calls of each day: settled, and lost with a process."""

    mails: dict[str, str]
    calls: dict[str, tuple[int, int]]


async def read_kept(store: SqlStore, address: str) -> Kept:
    """Tell what the watch keeps, apart from where the site is."""
    async with store.read() as reader:
        names = {row.id: row.name for row in await reader.execute(select(jobs))}
        order = (job_books.c.job_id, job_books.c.place)
        found: dict[str, list[str]] = {name: [] for name in names.values()}
        for row in await reader.execute(select(job_books).order_by(*order)):
            found[names[row.job_id]].append(row.book_key)
        return Kept(
            books={
                row.book_key: _plain(row._asdict(), address)
                for row in await reader.execute(select(books))
            },
            found=found,
            cursors={
                row.job_name: (row.start_index, row.is_exhausted == 1)
                for row in await reader.execute(select(cursors))
            },
            runs=Counter(
                (names[row.job_id], row.ended_at is not None, *(getattr(row, one) for one in RUN))
                for row in await reader.execute(select(runs))
            ),
        )


def _plain(row: dict[str, Any], address: str) -> dict[str, Any]:
    host = address.removeprefix("http://")
    told = {name: value for name, value in row.items() if name not in OURS}
    return {
        name: value.replace(host, "") if isinstance(value, str) else value
        for name, value in told.items()
    }


async def read_told(store: SqlStore) -> Told:
    """Tell how mails stand and how many calls were counted."""
    async with store.read() as reader:
        return Told(
            mails={row.id: row.state for row in await reader.execute(select(mails))},
            calls={
                row.day: (row.calls, row.reserved) for row in await reader.execute(select(usage))
            },
        )
