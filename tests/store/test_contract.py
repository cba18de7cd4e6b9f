"""A database that cannot serve is refused before work begins, in words that say how to mend it."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from sqlite3 import connect

import asyncmy
import asyncpg
import pytest
from sqlalchemy import make_url, text

from mimawari.app.copying import list_tables
from mimawari.app.doctor import examine
from mimawari.app.ops import opened
from mimawari.errors import BadInput, StoreDown
from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.job import NewJob
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.store.sql.contract import MOST_APART, Breach, find_breaches, judge
from mimawari.store.sql.facts import Facts
from mimawari.store.sql.migrate import upgrade
from tests.conftest import Databases
from tests.servers import Server, mariadb_server, postgres_server
from tests.servers.engines import MariadbServer
from tests.servers.small import filled, read_only, small_disk

TABLES = [table.name for table in list_tables()]
RECOVERY_SECONDS = 5


async def order(url: str, *statements: str) -> None:
    """Run statements as somebody else, on a session that is not the program's."""
    at = make_url(url)
    if at.get_backend_name() == "postgresql":
        connection = await asyncpg.connect(url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()
        return
    login = {"host": at.host, "port": at.port, "user": at.username, "password": at.password}
    connection = await asyncmy.connect(
        **login, db=at.database, autocommit=True, init_command="SET SESSION tx_read_only = 0"
    )
    async with connection.cursor() as cursor:
        for statement in statements:
            await cursor.execute(statement)
    connection.close()


async def breaches_of(url: str) -> list[Breach]:
    store = SqlStore(url, RealClock())
    try:
        return await find_breaches(store.database, TABLES)
    finally:
        await store.close()


@asynccontextmanager
async def upgraded(url: str) -> AsyncIterator[SqlStore]:
    store = SqlStore(url, RealClock())
    await upgrade(store.database)
    yield store
    await store.close()


async def check_refused(url: str, data: Path, words: str, advice: str) -> None:
    """Insist that start and doctor say the same: what is wrong, and how to mend it."""
    settings = Settings(data=data, database_url=url)
    with pytest.raises(BadInput, match=words) as raised:
        async with opened(settings, []):
            pass
    assert raised.value.code == "database_unfit"
    assert advice in str(raised.value)
    [check] = [check for check in await examine(settings) if check.name == "database"]
    assert not check.ok
    # What a server said of its own probe stands in brackets.
    assert check.found.partition(" (")[0] in str(raised.value)
    assert advice in check.advice


def renamed(url: str, *, username: str | None = None, database: str | None = None) -> str:
    changed = make_url(url).set(username=username, database=database)
    return changed.render_as_string(hide_password=False)


async def someone(url: str, *rights: str) -> str:
    """Make a user with these rights only, and return the URL by which it reaches the database."""
    at = make_url(url)
    name = f"u{abs(hash(url)) % 10**9}"
    if at.get_backend_name() == "postgresql":
        await order(url, f"CREATE ROLE {name} LOGIN", *(f"{right} TO {name}" for right in rights))
        return renamed(url, username=name)
    given = [f"GRANT {right} ON `{at.database}`.* TO {name}@'127.0.0.1'" for right in rights]
    await order(url, f"CREATE USER {name}@'127.0.0.1' IDENTIFIED BY 'secret'", *given)
    return renamed(url, username=name)


async def test_a_fit_database_breaks_no_term_whether_empty_or_not(
    engine: str, databases: Databases
) -> None:
    url = databases.fresh(engine)
    assert await breaches_of(url) == []
    async with upgraded(url):
        assert await breaches_of(url) == []
        # The looks left nothing behind.
        store = SqlStore(url, RealClock())
        async with store.read() as reader:
            assert (await reader.execute(text("SELECT * FROM meta"))).all() == []
        await store.close()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
async def test_a_postgres_database_of_another_encoding_is_refused(
    encoding: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh("postgresql")
    name = f"x_{make_url(url).database}"
    places = "LC_COLLATE 'C' LC_CTYPE 'C' LOCALE_PROVIDER libc"
    made = f"CREATE DATABASE {name} ENCODING '{encoding}' {places} TEMPLATE template0"
    await order(url, made)
    await check_refused(
        renamed(url, database=name), tmp_path, f"encoding is {encoding}", "ENCODING 'UTF8'"
    )


async def test_an_sqlite_file_of_another_encoding_is_refused(tmp_path: Path) -> None:
    with closing(connect(tmp_path / "wide.db")) as file:
        file.execute("PRAGMA encoding = 'UTF-16'")
        file.execute("CREATE TABLE other (id INTEGER)")
    await check_refused(f"sqlite:///{tmp_path}/wide.db", tmp_path, "UTF-16", "name a new file")


async def test_tables_of_another_character_set_are_refused_until_they_are_converted(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh("mariadb")
    async with upgraded(url):
        await order(url, "ALTER TABLE meta CONVERT TO CHARACTER SET latin1")
        mend = "ALTER TABLE `meta` CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;"
        await check_refused(url, tmp_path, "another character set", mend)
        await order(url, mend)
        assert await breaches_of(url) == []


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
async def test_a_clock_that_is_apart_from_ours_is_refused(
    engine: str, databases: Databases
) -> None:
    store = SqlStore(databases.fresh(engine), VirtualClock())
    [breach] = await find_breaches(store.database, TABLES)
    assert "clock" in breach.found
    assert "chrony" in breach.advice
    await store.close()


def test_a_clock_may_be_a_little_apart() -> None:
    facts = Facts(engine="PostgreSQL", version=(15, 1), encoding="UTF8")
    more = timedelta(seconds=1)
    assert judge(replace(facts, apart=MOST_APART)) == judge(replace(facts, apart=-MOST_APART)) == []
    [ahead] = judge(replace(facts, apart=MOST_APART + more))
    [behind] = judge(replace(facts, apart=-MOST_APART - more))
    assert "31 s ahead of" in ahead.found
    assert "31 s behind" in behind.found


@pytest.mark.parametrize(
    ("engine", "version", "is_enough"),
    [
        ("SQLite", (3, 37, 2), False),
        ("SQLite", (3, 38, 0), True),
        ("PostgreSQL", (11, 22), False),
        ("PostgreSQL", (12, 0), True),
        ("MariaDB", (10, 5, 29), False),
        ("MariaDB", (10, 6, 0), True),
    ],
)
def test_a_version_that_lacks_what_is_needed_is_too_old(
    engine: str, version: tuple[int, ...], is_enough: bool
) -> None:
    found = judge(Facts(engine=engine, version=version, encoding="UTF-8"))
    assert ["or newer" in breach.advice for breach in found] == ([] if is_enough else [True])


class OldMariadb(MariadbServer):
    """A server that says that it is an old one."""

    __slots__ = ()

    def _command(self) -> list[str]:
        return [*super()._command(), "--version=10.4.34-MariaDB"]


async def test_a_server_that_is_too_old_is_refused(tmp_path: Path) -> None:
    server = OldMariadb(durable=False)
    try:
        await asyncio.to_thread(server.open)
        await check_refused(server.url, tmp_path, "MariaDB 10.4.34", "MariaDB 10.6 or newer")
    finally:
        server.close()


@pytest.mark.parametrize(
    ("engine", "rights"),
    [("postgresql", ()), ("mariadb", ("SELECT, INSERT, UPDATE, DELETE",))],
)
async def test_a_user_who_may_not_make_tables_is_refused_before_an_upgrade(
    engine: str, rights: tuple[str, ...], databases: Databases, tmp_path: Path
) -> None:
    url = await someone(databases.fresh(engine), *rights)
    await check_refused(url, tmp_path, "lacks a right", "GRANT ALL ON")


async def test_a_user_who_may_not_change_the_tables_is_refused_before_an_upgrade(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh("postgresql")
    rights = ("GRANT ALL ON ALL TABLES IN SCHEMA public", "GRANT ALL ON SCHEMA public")
    async with upgraded(url):
        other = await someone(url, *rights)
        assert await breaches_of(other) == []
        await order(url, "UPDATE alembic_version SET version_num = '0012'")
        await check_refused(other, tmp_path, "belong to another user", "mimawari db upgrade")


@pytest.mark.parametrize(
    ("engine", "rights", "words"),
    [
        ("postgresql", ("GRANT SELECT ON ALL TABLES IN SCHEMA public",), "may not read and write"),
        ("mariadb", ("SELECT",), "lacks a right"),
    ],
)
async def test_a_user_who_may_only_read_is_refused(
    engine: str, rights: tuple[str, ...], words: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh(engine)
    async with upgraded(url):
        await check_refused(await someone(url, *rights), tmp_path, words, "GRANT")


async def test_a_schema_that_does_not_exist_is_refused(
    databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh("postgresql")
    name = make_url(url).database
    await order(url, f"ALTER DATABASE {name} SET search_path = nowhere")
    await check_refused(url, tmp_path, "search_path", "CREATE SCHEMA")


@asynccontextmanager
async def read_only_server(url: str) -> AsyncIterator[None]:
    """Have a server's databases refuse writes for as long as the block lasts."""
    on, off = (
        ("ALTER DATABASE {name} SET default_transaction_read_only = on",
         "ALTER DATABASE {name} RESET default_transaction_read_only")
        if url.startswith("postgresql")
        else ("SET GLOBAL read_only = 1", "SET GLOBAL read_only = 0")
    )  # fmt: skip
    name = make_url(url).database
    await order(url, on.format(name=name))
    try:
        yield
    finally:
        leave = "SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE"
        before = [leave] if url.startswith("postgresql") else []
        await order(url, *before, off.format(name=name))


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
async def test_a_read_only_database_is_refused_and_one_that_becomes_so_is_waited_for(
    engine: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh(engine)
    ours = await someone(url, "ALL") if engine == "mariadb" else url
    async with upgraded(ours), read_only_server(url):
        await check_refused(ours, tmp_path, "read-only", "primary server")
    async with upgraded(ours) as store:
        async with read_only_server(url):
            # What is open already: the pool has to notice that such connections are of no use.
            await store.database.link.close()
            with pytest.raises(StoreDown, match="read-only"):
                await store.queue.put([NewJob(kind="t")])
        async with asyncio.timeout(RECOVERY_SECONDS):
            assert len(await store.queue.put([NewJob(kind="t")])) == 1


async def write_much(store: SqlStore) -> None:
    # In rows that stay in their pages: MariaDB itself crashes on a longer value without space.
    for _ in range(20):
        await store.queue.put([NewJob(kind="t", args={"much": "x" * 3000}) for _ in range(100)])


async def check_outlives(store: SqlStore, words: str) -> None:
    """Insist that writes fail as a store that is down."""
    with pytest.raises(StoreDown, match=words):
        await write_much(store)


async def test_a_file_on_a_read_only_disk_is_refused_and_waited_for(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, mib=32):
        url = f"sqlite:///{disk}/m.db"
        async with upgraded(url):
            pass
        with read_only(disk):
            await check_refused(url, tmp_path, "read-only", "primary server")
            store = SqlStore(url, RealClock())
            await check_outlives(store, "read-only|unable to open")
        assert len(await store.queue.put([NewJob(kind="t")])) == 1
        await store.close()


async def test_a_file_on_a_full_disk_is_refused_and_waited_for(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, mib=32):
        async with upgraded(f"sqlite:///{disk}/m.db") as store:
            with filled(disk):
                await check_refused(f"sqlite:///{disk}/m.db", tmp_path, "no space", "free space")
                await check_outlives(store, "no space")
            assert len(await store.queue.put([NewJob(kind="t")])) == 1


@pytest.fixture
def servers(engine: str) -> Iterator[Server]:
    start = {"postgresql": postgres_server, "mariadb": mariadb_server}[engine]
    with start(durable=False) as server:
        yield server


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
async def test_a_server_on_a_full_disk_is_refused_and_waited_for(
    engine: str, servers: Server, tmp_path: Path
) -> None:
    url = servers.fresh_database()
    name = make_url(url).database or ""
    disk = servers.folder / "data" / name if engine == "mariadb" else servers.folder / "disk"
    with small_disk(disk, mib=64, account=servers.account):
        if engine == "postgresql":
            await order(url, f"CREATE TABLESPACE small LOCATION '{disk}'")
            url = renamed(url, database=f"full_{name}")
            await order(servers.url, f"CREATE DATABASE full_{name} TABLESPACE small")
        async with upgraded(url) as store:
            with filled(disk):
                await check_refused(url, tmp_path, "no space", "free space")
                await check_outlives(store, "no space")
            async with asyncio.timeout(RECOVERY_SECONDS):
                assert len(await store.queue.put([NewJob(kind="t")])) == 1
