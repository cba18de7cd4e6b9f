"""Transactions; the one place where a driver's errors become ours."""

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
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
from mimawari.kernel.ports import Clock
from mimawari.store.sql.dialect import dialect_of
from mimawari.store.sql.link import Line
from mimawari.store.sql.refusals import Refusal, refusal_of
from mimawari.store.sql.signal import SqlSignal
from mimawari.text import one_line

CONTENTION_TRIES = 8
IO_SECONDS = 30.0

T = TypeVar("T")
Guarded = Callable[[Awaitable[Any]], Awaitable[Any]]

_encode = json.JSONEncoder(separators=(",", ":")).encode


def as_rows(rows: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Bind many rows as one value: one statement, one round trip."""
    return {"rows": _encode(rows)}


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
                last = error
        raise last

    async def _run_once(self, work: Callable[[Session], T]) -> T:
        def transaction(connection: Connection) -> tuple[T, set[str], Any]:
            with connection.begin():
                session = Session(connection)
                result = work(session)
                sealed = self._seal(session)
            return result, session.topics, sealed

        with self._noticing():
            async with self._queue:
                performed = self.link.perform(transaction, read_only=False)
                result, topics, sealed = await self._guarded(performed)
            await self._tell(topics, sealed)
        return result

    async def look(self, work: Callable[[Session], T]) -> T:
        """Look at what is committed."""
        looked = self.link.perform(lambda c: work(Session(c)), read_only=True)
        return await self._guarded(looked)

    @asynccontextmanager
    async def read(self) -> AsyncIterator[Reader]:
        """Look at what is committed, a query at a time."""
        yield Reader(self)

    @asynccontextmanager
    async def write(self) -> AsyncIterator[Opened]:
        """Open a transaction between steps, commit it at the end, then wake who waits."""
        async with self._queue, self._line() as line:
            opened = Opened(line, self._guarded)
            await opened.run(lambda session: session.connection.begin())
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

    async def _guarded(self, step: Awaitable[T]) -> T:
        """Bound a step in time, and make its errors ours."""
        try:
            async with asyncio.timeout(IO_SECONDS):
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
            return Contention("another transaction was in the way")
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
