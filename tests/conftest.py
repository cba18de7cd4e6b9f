"""What tests stand on: three real engines, a store on each, and a clock that jumps."""

import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.notify.tables import metadata as notify
from mimawari.store.redis import RedisStore
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import metadata
from mimawari.watches.books.tables import metadata as books
from mimawari.watches.hot.tables import ips
from mimawari.watches.prices.tables import categories, products
from mimawari.watches.rentals.tables import metadata as rentals
from mimawari.watches.streams.tables import metadata as streams
from tests.conformance.counts import pytest_terminal_summary
from tests.faults.world import FULL
from tests.ready import lay_tables
from tests.servers import BACKENDS, ENGINES, Server, mariadb_server, postgres_server, redis_server
from tests.stores import BESIDE, open_store

__all__ = ["pytest_terminal_summary"]


LONG = (
    "tests/faults/",
    "tests/golden/test_responses.py",
    "tests/app/test_schemathesis.py",
    "tests/hot/test_api_description.py",
    "tests/prices/test_api_description.py",
    "tests/app/test_check_",
    "tests/rentals/test_api_description.py",
    "tests/streams/test_api_description.py",
    "tests/streams/test_serving.py",
    "tests/kube/",
    "tests/sites/test_in_the_world.py",
    "tests/net/test_b",
    "tests/net/test_draining.py",
    "tests/sim/test_market",
    "tests/books/test_cli_running.py",
)
"""What takes longest; begun first, it leaves no worker alone at the end."""
TEST_SECONDS = 600
"""Longer than any test takes on a busy machine: one that stands still fails under its name."""


def pytest_configure() -> None:
    """Let Ctrl-C mean what it does, also where a shell ran us in the background and took it off."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first; let no test wait for ever, but those of full length."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))
    for item in [] if FULL else items:
        item.add_marker(pytest.mark.timeout(TEST_SECONDS))


class Databases:
    """One server an engine, started when first asked for, and databases on them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._servers: dict[str, Server] = {}
        self._kept: dict[str, str] = {}
        self._made = 0

    def fresh(self, engine: str) -> str:
        """Return the URL of a new empty database."""
        if engine == "sqlite":
            self._made += 1
            return f"sqlite:///{self._folder}/{self._made}.db"
        if engine == "redis":
            return f"{self.fresh('postgresql')}{BESIDE}{self._server(engine).fresh_database()}"
        return str(self._server(engine).fresh_database())

    def _server(self, engine: str) -> Server:
        start = {
            "postgresql": postgres_server,
            "mariadb": mariadb_server,
            "redis": redis_server,
        }[engine]
        if engine not in self._servers:
            self._servers[engine] = self._stack.enter_context(start(durable=False))
        return self._servers[engine]

    async def ready(self) -> str:
        """Return the URL of a new SQLite database with all its tables, and nothing in them."""
        self._made += 1
        return await lay_tables(self._folder / f"{self._made}.db")

    async def kept(self, engine: str) -> str:
        """Return the URL of the one database that ordinary tests share, with all its tables."""
        if engine == "redis":
            if engine not in self._kept:
                self._kept[engine] = self._server(engine).fresh_database()
            return f"{await self.kept('postgresql')}{BESIDE}{self._kept[engine]}"
        if engine not in self._kept:
            store = SqlStore(self.fresh(engine), VirtualClock())
            await upgrade(store.database)
            await store.close()
            url = store.database.url.set(drivername=engine)
            self._kept[engine] = url.render_as_string(hide_password=False)
        return self._kept[engine]


@pytest.fixture(scope="session")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Databases]:
    with ExitStack() as stack:
        yield Databases(tmp_path_factory.mktemp("sqlite"), stack)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=BACKENDS if FULL else ENGINES)
def backend(request: pytest.FixtureRequest) -> str:
    """Each engine, and in the faults' full length Redis beside one."""
    return str(request.param)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(engine: str, databases: Databases, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """An empty store with all its tables, on each engine in turn."""
    store = open_store(await databases.kept(engine), clock)
    async with store.database.write() as session:
        # What the hot watch keeps goes with its IPs, and what prices keeps with its products.
        kept = (books, notify, rentals, streams)
        others = [table for tables in kept for table in reversed(tables.sorted_tables)]
        for table in (*metadata.sorted_tables, ips, products, categories, *others):
            await session.execute(table.delete())
    if isinstance(store, RedisStore):
        await store.link.client.flushdb()
        await store.relay.look()
    yield store
    await store.close()
