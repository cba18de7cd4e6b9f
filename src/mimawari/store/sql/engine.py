"""Transactions; the one place where a driver's errors become ours."""

import asyncio
import json
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, CursorResult, Executable, Result, event, make_url
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import (
    DBAPIError,
    InterfaceError,
    InternalError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from mimawari.errors import StoreDown
from mimawari.kernel.clock import Mark, RealClock
from mimawari.kernel.ports import Clock
from mimawari.store.sql.dialect import dialect_of
from mimawari.store.sql.link import LOCK_SECONDS, Line
from mimawari.store.sql.refusals import Refusal, refusal_of
from mimawari.store.sql.signal import SqlSignal
from mimawari.text import one_line

CONTENTION_TRIES = 8
IO_SECONDS = 30.0
REQUEST_SECONDS = 4.0
"""How long a request waits for the right to write, before it is refused."""

LEAST_SECONDS = 0.05
REAL = RealClock()
"""A client waits in real time, whatever clock the store goes by."""


@dataclass(slots=True)
class _Patience:
    """How many seconds a request still waits for the right to write, over all its writes."""

    left: float = REQUEST_SECONDS

    def spend(self, since: Mark) -> None:
        """Take off the time that was waited in vain, or in line."""
        spent = REAL.mark().elapsed_since(since).total_seconds()
        self.left = max(LEAST_SECONDS, self.left - spent)


_patience: ContextVar[_Patience | None] = ContextVar("patience", default=None)

T = TypeVar("T")
Guarded = Callable[[Awaitable[Any]], Awaitable[Any]]

_encode = json.JSONEncoder(separators=(",", ":")).encode


def as_rows(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Bind many rows as one value: one statement, one round trip."""
    return {"rows": _encode(rows)}


def _lock_options() -> dict[str, Any]:
    """Return how long a transaction that begins now waits for the write lock of its file."""
    patience = _patience.get()
    # A little less than the step may take, so that its own error says what was in the way.
    return {} if patience is None else {LOCK_SECONDS: patience.left * 0.9}


@contextmanager
def impatient() -> Iterator[None]:
    """Let a write that is begun in this block fail with StoreDown instead of waiting for long."""
    token = _patience.set(_Patience())
    try:
        yield
    finally:
        _patience.reset(token)


class Touched:
    """The names of what a transaction changes, by topic."""

    def __init__(self) -> None:
        self.lasting: defaultdict[str, set[str]] = defaultdict(set)
        self.passing: defaultdict[str, set[str]] = defaultdict(set)

    def __bool__(self) -> bool:
        """Tell whether anything is changed."""
        return any(self.lasting.values()) or any(self.passing.values())

    def add(self, other: "Touched") -> None:
        """Add what another step of the same transaction changes."""
        for mine, theirs in ((self.lasting, other.lasting), (self.passing, other.passing)):
            for topic, names in theirs.items():
                mine[topic] |= names


class Relay(Protocol):
    """Passes on what was committed to a second place, which follows this one."""

    def seal(self, session: "Session") -> Any:
        """Write down, in the transaction, what is to be passed on; return it."""

    async def pass_on(self, sealed: Any) -> None:
        """Pass it on; what cannot be passed on now is later, so this never raises."""

    def stir(self) -> None:
        """Look soon whether something was committed that was not passed on."""


class Contention(StoreDown):
    """Two transactions were in each other's way; the same work may be done again."""


class Session:
    """One open transaction, as plain functions see it."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.topics: set[str] = set()
        self.touched = Touched()

    def execute(self, statement: Executable, values: Any = None) -> CursorResult[Any]:
        """Run one statement."""
        return self.connection.execute(statement, values)

    def tell(self, topic: str) -> None:
        """Wake who waits for a topic, here and elsewhere, once this is committed."""
        self.topics.add(topic)

    def touch(self, topic: str, names: Iterable[str], *, lasting: bool = True) -> None:
        """Say what this changes, for a relay; what does not last is noticed by itself in time."""
        (self.touched.lasting if lasting else self.touched.passing)[topic].update(names)


class Opened:
    """A connection held open between steps, as those who await see it."""

    def __init__(self, line: Line, guarded: Guarded) -> None:
        self._line = line
        self._guarded = guarded
        self.topics: set[str] = set()
        self.touched = Touched()

    async def execute(self, statement: Executable, values: Any = None) -> Result[Any]:
        """Run one statement and fetch all its rows."""
        return await self.run(lambda session: _fetched(session, statement, values))

    async def run(self, work: Callable[[Session], T]) -> T:
        """Run a plain function as one step."""

        def step(connection: Connection) -> T:
            session = Session(connection)
            result = work(session)
            self.topics |= session.topics
            self.touched.add(session.touched)
            return result

        result: T = await self._guarded(self._line.run(step))
        return result


class Reader:
    """A look at what is committed, as those who await see it."""

    def __init__(self, database: "Database") -> None:
        self._database = database

    async def execute(self, statement: Executable, values: Any = None) -> Result[Any]:
        """Run one query and fetch all its rows."""
        return await self._database.look(lambda session: _fetched(session, statement, values))


def _fetched(session: Session, statement: Executable, values: Any) -> Result[Any]:
    result = session.execute(statement, values)
    return result.freeze()() if result.returns_rows else result


class Database:
    """One database of any engine."""

    def __init__(self, url: str, clock: Clock) -> None:
        parsed = make_url(url)
        self.clock = clock
        self.dialect = dialect_of(parsed)
        self.url = parsed.set(drivername=self.dialect.driver)
        self.link = self.dialect.link(self.url)
        self.dialect.prepare(self.link.engine)
        event.listen(self.link.engine, "handle_error", _leave_read_only)
        self.signal = SqlSignal(self)
        self.relay: Relay | None = None
        # Where there is one writer only, it is best waited for in line.
        self._queue: AbstractAsyncContextManager[Any] = (
            asyncio.Lock() if self.dialect.writes_one_at_a_time else nullcontext()
        )

    async def run(self, work: Callable[[Session], T]) -> T:
        """Do work in a transaction, again if another one was in its way."""
        for _ in range(CONTENTION_TRIES):
            try:
                return await self._run_once(work)
            except Contention as error:
                if _patience.get() is not None and self.dialect.writes_one_at_a_time:
                    raise
                last = error
        raise last

    async def _run_once(self, work: Callable[[Session], T]) -> T:
        def transaction(options: dict[str, Any], connection: Connection) -> tuple[T, set[str], Any]:
            with connection.execution_options(**options).begin():
                session = Session(connection)
                result = work(session)
                sealed = self._seal(session)
            return result, session.topics, sealed

        with self._noticing():
            async with self._turn():
                # The context stays behind where a file is used in a thread of its own.
                step = partial(transaction, _lock_options())
                performed = self.link.perform(step, read_only=False)
                result, topics, sealed = await self._guarded(performed)
            await self._tell(topics, sealed)
        return result

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait in line where there is one writer only, for as long as the caller has patience."""
        patience, began = _patience.get() or _Patience(math.inf), REAL.mark()
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(None if patience.left == math.inf else patience.left):
                    await stack.enter_async_context(self._queue)
            except TimeoutError as error:
                raise StoreDown("another write holds the database; nothing was saved") from error
            finally:
                patience.spend(began)
            began = REAL.mark()
            try:
                yield
            except StoreDown:
                patience.spend(began)
                raise

    async def check_space(self) -> None:
        """Raise StoreDown if what is written next may find no space."""
        await self._guarded(self.link.check_space())

    async def look(self, work: Callable[[Session], T]) -> T:
        """Look at what is committed."""
        looked = self.link.perform(lambda c: work(Session(c)), read_only=True)
        return await self._guarded(looked, IO_SECONDS)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reader]:
        """Look at what is committed, a query at a time."""
        yield Reader(self)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Opened]:
        """Open a transaction between steps, commit it at the end, then wake who waits."""
        async with self._turn(), self._line() as line:
            opened = Opened(line, self._guarded)
            options = _lock_options()
            await opened.run(lambda s: s.connection.execution_options(**options).begin())
            yield opened

            def commit(session: Session) -> Any:
                session.topics, session.touched = opened.topics, opened.touched
                sealed = self._seal(session)
                session.connection.commit()
                return sealed

            with self._noticing():
                sealed = await opened.run(commit)
        with self._noticing():
            await self._tell(opened.topics, sealed)

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Opened]:
        """Hold one connection, with no transaction on it, for as long as it lives."""
        async with self._line() as line:
            yield Opened(line, self._guarded)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Have the relay look where a step is cut short: it may be committed all the same."""
        try:
            yield
        except BaseException:
            if self.relay is not None:
                self.relay.stir()
            raise

    def _seal(self, session: Session) -> Any:
        sealed = None
        if self.relay is not None and session.touched:
            sealed = self.relay.seal(session)
        if self.dialect.announce is not None:
            for topic in sorted(session.topics):
                values = {"topic": topic, "sender": self.signal.name}
                session.execute(self.dialect.announce, values)
        return sealed

    async def _tell(self, topics: set[str], sealed: Any) -> None:
        if self.relay is not None and sealed is not None:
            await self.relay.pass_on(sealed)
        for topic in topics:
            self.signal.tell(topic)

    @asynccontextmanager
    async def _line(self) -> AsyncIterator[Line]:
        line = self.link.line()
        try:
            yield line
        finally:
            # What cannot be closed is gone already, which is all that is wanted.
            with suppress(StoreDown):
                await self._guarded(line.close())

    async def _guarded(self, step: Awaitable[T], seconds: float | None = None) -> T:
        """Bound a step in time, and make its errors ours."""
        patience = _patience.get()
        try:
            async with asyncio.timeout(seconds or (patience.left if patience else IO_SECONDS)):
                return await step
        except (SQLAlchemyError, OSError, TimeoutError) as error:
            raise self._ours(error) from error
        except Exception as error:
            # Drivers raise errors of their own while a server is starting or stopping.
            if type(error).__module__.split(".")[0] not in {"asyncpg", "asyncmy"}:
                raise
            raise _down(error) from error

    def _ours(self, error: Exception) -> Exception:
        if isinstance(error, OSError | TimeoutError | PoolTimeout):
            return _down(error)
        if not isinstance(error, DBAPIError):
            return error
        if self.dialect.contended(error):
            return Contention("another transaction holds the database; nothing was saved")
        if (refusal := refusal_of(error)) is not None:
            return StoreDown(
                f"the database refuses work: {refusal} ({_words(error.orig or error)})"
            )
        lost = isinstance(error, OperationalError | InterfaceError | InternalError)
        # A server that is starting or stopping answers with an error of no class at all.
        lost = lost or type(error) is DBAPIError
        if not (lost or error.connection_invalidated):
            return error
        return _down(error.orig or error)

    async def close(self) -> None:
        """Let go of every connection."""
        await self.signal.close()
        await self.link.close()


def _down(error: BaseException) -> StoreDown:
    return StoreDown(f"the database does not answer: {_words(error)}")


def _words(error: BaseException) -> str:
    return one_line(str(error)) or type(error).__name__


def _leave_read_only(context: ExceptionContext) -> None:
    """Close a connection that refuses writes: it may go on refusing them when others may write."""
    if refusal_of(context.original_exception) is Refusal.READ_ONLY:
        context.is_disconnect = True
