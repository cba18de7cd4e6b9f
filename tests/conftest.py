"""What tests stand on: three real engines, a store on each, and a clock that jumps."""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.store.sql.tables import metadata
from mimawari.watches.hot.tables import ips
from mimawari.watches.prices.tables import products
from mimawari.watches.rentals.tables import metadata as rentals
from tests.conformance.counts import pytest_terminal_summary
from tests.servers import ENGINES, mariadb_server, postgres_server

__all__ = ["pytest_terminal_summary"]


LONG = (
    "tests/faults/",
    "tests/app/test_schemathesis.py",
    "tests/hot/test_api_description.py",
    "tests/prices/test_api_description.py",
    "tests/app/test_check_hot.py",
    "tests/app/test_check_rentals.py",
    "tests/rentals/test_api_description.py",
)
"""What takes longest; begun first, it leaves no worker alone at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes longest first."""
    items.sort(key=lambda item: not item.nodeid.startswith(LONG))


class Databases:
    """One server an engine, started when first asked for, and databases on them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._servers: dict[str, object] = {}
        self._kept: dict[str, str] = {}
        self._made = 0

    def fresh(self, engine: str) -> str:
        """Return the URL of a new empty database."""
        if engine == "sqlite":
            self._made += 1
            return f"sqlite:///{self._folder}/{self._made}.db"
        start = {"postgresql": postgres_server, "mariadb": mariadb_server}[engine]
        if engine not in self._servers:
            self._servers[engine] = self._stack.enter_context(start(durable=False))
        return str(self._servers[engine].fresh_database())  # type: ignore[attr-defined]

    async def kept(self, engine: str) -> str:
        """Return the URL of the one database that ordinary tests share, with all its tables."""
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


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def store(engine: str, databases: Databases, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """An empty store with all its tables, on each engine in turn."""
    store = SqlStore(await databases.kept(engine), clock)
    async with store.database.write() as session:
        # What the hot watch keeps goes with its IPs, and what prices keeps with its products.
        for table in (*metadata.sorted_tables, ips, products, *reversed(rentals.sorted_tables)):
            await session.execute(table.delete())
    yield store
    await store.close()
