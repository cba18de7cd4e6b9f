"""The kernel's ports: what a store must do, said as promises.

Every store passes one suite of tests, so a promise here is a promise everywhere.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from typing import Any, Protocol

from mimawari.errors import Wait
from mimawari.kernel.clock import Mark
from mimawari.kernel.job import End, Job, JobView, Lease, NewJob, State, Turn, Want
from mimawari.kernel.not_found import NotFoundRuns, NotFoundTx
from mimawari.kernel.outbox import Outbox
from mimawari.kernel.sessions import Sessions
from mimawari.kernel.signals import Signal
from mimawari.kernel.streaks import Streaks
from mimawari.kernel.values import (
    BreakerPolicy,
    BreakerView,
    Entry,
    Grant,
    Limit,
    Move,
    Note,
    Pause,
    Trouble,
)


class Clock(Protocol):
    """The only source of now and sleep."""

    def now(self) -> datetime:
        """Return the time, aware and in UTC; it never jumps."""

    def mark(self) -> Mark:
        """Return this moment in true time, which no turning of the wall clock changes."""

    async def sleep(self, span: timedelta) -> None:
        """Sleep for as long as said on this clock."""


class Reporter(Protocol):
    """Whom to tell of what nobody expected: a bug, or a job among the dead letters."""

    def report(self, trouble: Trouble) -> None:
        """Tell of one; never raises and never waits for the network."""


class Schedule(Protocol):
    """Members with a next time."""

    async def put(self, entries: Sequence[Entry]) -> None:
        """Set each member's entry; a waiting scheduler hears of it, also in another process."""

    async def add(self, entries: Sequence[Entry]) -> int:
        """Set the entries of members that are not there yet; say how many."""

    async def due(self, now: datetime, most: int, without: Collection[str] = ()) -> list[Entry]:
        """List the entries whose time has come, earliest first, of all but some kinds."""

    async def advance(self, moves: Sequence[Move]) -> int:
        """Move members on and enqueue their jobs in one step; say how many jobs are new.

        A member whose time is no longer `seen_at` was taken by somebody else and is left alone.
        """

    async def next_at(self, without: Collection[str] = ()) -> datetime | None:
        """Tell the earliest time on the schedule, of all but some kinds."""

    async def find(self, member: str) -> Entry | None:
        """Find one member's entry."""

    async def list(self, most: int, after: str = "") -> list[Entry]:
        """List entries by member, a page at a time."""

    async def remove(self, member: str) -> bool:
        """Forget a member; say whether it was there."""

    async def count(self) -> int:
        """Count the members."""

    async def kinds(self) -> frozenset[str]:
        """Return the kinds that have members."""


class Queue(Protocol):
    """Jobs that are claimed under a lease and end once."""

    async def put(self, new: Sequence[NewJob]) -> list[str]:
        """Accept jobs for good and return the new ones' ids; a key that lives is left out."""

    async def turn(self, ends: Sequence[End], wants: Sequence[Want], worker: str) -> Turn:
        """End jobs and claim others in one transaction; an end with a stale token is refused."""

    async def extend(self, leases: Sequence[Lease]) -> frozenset[str]:
        """Keep claims alive and return the ids of those that were lost."""

    async def expired(self, now: datetime, most: int) -> list[Job]:
        """List claimed jobs whose lease has run out; changes nothing."""

    async def find_jobs(self, ids: Collection[str]) -> list[Job]:
        """Find live jobs as they are claimed, whoever has them now."""

    async def settle_stop(self, ends: Sequence[End]) -> frozenset[str]:
        """End jobs that a process had in hand when its guard ended it; return those that counted.

        Each is a suspect from now on, also one that another process has claimed since, which stays
        there. One whose lease has run out since, and that nobody has claimed, is ended as well.
        """

    async def hasten(self, key: str, priority: int) -> JobView | None:
        """Let the live job that holds a key go before others, at its own time; return it."""

    async def requeue(self, job_id: str) -> bool:
        """Bring a dead letter (`failed`) back with all its attempts; say whether there was one."""

    async def next_at(self, kinds: Collection[str]) -> datetime | None:
        """Tell when the next job of these kinds is due or the next lease of theirs runs out."""

    async def depths(self, kinds: Collection[str], most: int) -> Mapping[str, int]:
        """Count the due, unclaimed jobs of each kind, up to `most` of each."""

    async def kinds(self) -> frozenset[str]:
        """Name the kinds that have live jobs."""

    async def counts(self, kind: str | None = None) -> Mapping[State, int]:
        """Count the jobs in each state, of all kinds or of one."""

    async def find(self, job_id: str) -> JobView | None:
        """Find one job, live or ended."""

    async def find_live(self, key: str) -> JobView | None:
        """Find the live job that holds a key."""

    async def list(
        self,
        most: int,
        *,
        before: str | None = None,
        state: State | None = None,
        kind: str | None = None,
    ) -> list[JobView]:
        """List jobs, newest first, a page at a time: those with an id below `before`."""

    async def page(self, job_id: str) -> bytes | None:
        """Return the page that was kept with a dead letter."""

    async def purge(self, state: State, before: datetime, kind: str | None = None) -> int:
        """Forget jobs that ended so before a time, of all kinds or of one; say how many."""


class Limiter(Protocol):
    """One limit for all callers, processes and restarts, counted as the site counts."""

    async def acquire(self, limit: Limit, caller: str) -> Grant | Wait:
        """Give leave for one request now, or say until when and why there is none."""

    async def settle(self, grant: Grant) -> None:
        """Say that the request is over, which frees its place in the window sooner."""

    async def release(self, grant: Grant) -> None:
        """Give back leave for a request that was certainly not sent."""

    async def hold(self, name: str, until: datetime, reason: str) -> None:
        """Give no leave before a time, as a site's Retry-After asks."""

    async def peek(self, limit: Limit) -> Wait | None:
        """Tell what `acquire` would wait for, without taking anything."""

    async def used(self, limit: Limit) -> int:
        """Count the grants that the site may still hold against us, up to the limit's count."""


class Breaker(Protocol):
    """Stays away from a site that turned us away, over all processes and restarts."""

    async def check(self, site: str) -> Wait | None:
        """Say until when to stay away; after that time let exactly one caller try."""

    async def failed(
        self, site: str, policy: BreakerPolicy, reason: str, until: datetime | None = None
    ) -> BreakerView:
        """Count one refusal and tell what follows; a failed trial opens it again at once."""

    async def worked(self, site: str) -> None:
        """Close the breaker and forget the failures."""

    async def find(self, site: str) -> BreakerView | None:
        """Tell how a breaker stands; changes nothing."""

    async def list(self) -> list[BreakerView]:
        """List the breakers that are not closed or have counted a failure."""


class Pauses(Protocol):
    """When breakers were open and limits on hold: kept in the step that made them so."""

    async def list(self, since: datetime, names: Collection[str] = ()) -> Sequence[Pause]:
        """List the pauses that were not over at a time, of all or of some, earliest first."""

    async def purge(self, before: datetime) -> int:
        """Forget pauses that were over before a time; say how many."""


class Cursor(Protocol):
    """Where a reader has come to; moved by the commit that keeps what was read."""

    async def find(self, name: str) -> str | None:
        """Tell where a reader has come to."""

    async def move(self, name: str, value: str, seen: str | None) -> bool:
        """Set a new place if the old one is still `seen`; say whether it was."""

    async def remove(self, name: str) -> bool:
        """Forget a place; say whether it was there."""

    async def list(self, prefix: str = "") -> Mapping[str, str]:
        """List places by name."""


class Cache(Protocol):
    """Values that may be forgotten at any time and are after their TTL."""

    async def get(self, key: str) -> bytes | None:
        """Return a value that has not run out."""

    async def set(self, key: str, value: bytes, ttl: timedelta) -> None:
        """Keep a value for a while."""

    async def show(self, notes: Sequence[Note]) -> None:
        """Show records to people, for a while, if the cache has tools to look into it with.

        They are copies of what is kept elsewhere: nothing reads them back, and none is dropped.
        """

    async def drop(self, prefix: str) -> int:
        """Forget every value whose key begins so; say how many there were."""

    async def purge(self, now: datetime) -> int:
        """Forget what has run out; say how many."""


class Tx(Protocol):
    """The one transaction that ends a job; all that is said to it happens once or not at all."""

    @property
    def not_found(self) -> NotFoundTx:
        """The runs of 404s, as part of this transaction."""

    async def execute(self, statement: Any, values: Any = None) -> Any:
        """Run one SQLAlchemy statement of a watch on its own tables."""

    async def save(
        self,
        table: Any,
        rows: Sequence[Mapping[str, Any]],
        change: Sequence[str] = (),
        keys: Sequence[str] = (),
    ) -> None:
        """Insert rows in one step; where a key (primary or `keys`) is taken, change columns."""

    def put(self, *jobs: NewJob) -> None:
        """Enqueue follow-up jobs."""

    def emit(self, key: str, kind: str, body: Mapping[str, Any], *, destination: str) -> None:
        """Send an event."""

    def move(self, cursor: str, value: str) -> None:
        """Move a cursor."""

    def place(self, *entries: Entry) -> None:
        """Set targets on the schedule."""

    def place_new(self, *entries: Entry) -> None:
        """Set targets that are not on the schedule yet; those that are keep their time."""

    def remove(self, *members: str) -> None:
        """Take targets off the schedule."""

    def next_run(self, at: datetime, reason: str | None = None) -> None:
        """Set when the job's target runs next."""


class Reader(Protocol):
    """A look at the tables that changes nothing."""

    async def execute(self, statement: Any, values: Any = None) -> Any:
        """Run one SQLAlchemy query."""


class Store(Protocol):
    """All ports on one backend."""

    @property
    def schedule(self) -> Schedule:
        """The schedule."""

    @property
    def queue(self) -> Queue:
        """The queue."""

    @property
    def limiter(self) -> Limiter:
        """The limiter."""

    @property
    def breaker(self) -> Breaker:
        """The breaker."""

    @property
    def pauses(self) -> Pauses:
        """The pauses."""

    @property
    def streaks(self) -> Streaks:
        """The streaks of failures."""

    @property
    def not_found(self) -> NotFoundRuns:
        """The runs of 404s."""

    @property
    def sessions(self) -> Sessions:
        """Who is logged in."""

    @property
    def cursor(self) -> Cursor:
        """The cursor."""

    @property
    def outbox(self) -> Outbox:
        """The outbox."""

    @property
    def cache(self) -> Cache:
        """The cache."""

    @property
    def signal(self) -> Signal:
        """The signal."""

    def commit(
        self, job: Job, state: State = State.DONE, reason: str | None = None
    ) -> AbstractAsyncContextManager[Tx]:
        """Open the transaction that ends a job; refuses with LeaseLost before any effect."""

    def edit(self) -> AbstractAsyncContextManager[Tx]:
        """Open a transaction for a person's change, which no job owns."""

    def read(self) -> AbstractAsyncContextManager[Reader]:
        """Look at what is committed."""

    async def ping(self) -> None:
        """Raise StoreDown unless the backend answers."""

    async def close(self) -> None:
        """Let go of every connection."""
