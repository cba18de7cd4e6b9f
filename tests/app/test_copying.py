"""`mimawari db copy`: every row of one database in another, of any engine, or nothing."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import insert, inspect, select

from mimawari.app import copying
from mimawari.app.copying import Copied, list_tables
from mimawari.app.demo.run import staged
from mimawari.errors import BadInput
from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.watches.hot.tables import ips
from mimawari.watches.streams.models import Status, StreamStatus
from tests.app.terminal import Terminal
from tests.conftest import Databases
from tests.ready import lay_tables
from tests.streams.cli_ground import DARK, a_monitor, a_step, keep

MANY = {"ip_metadata", "item_snapshots", "mercari_crawl_results", "books", "properties", "monitors"}


async def copy(old: str, new: str) -> list[Copied]:
    """Copy one database to another."""
    # As operators copy: the clocks of the servers must agree with that of the machine.
    source, target = (SqlStore(url, RealClock()) for url in (old, new))
    try:
        return await copying.copy(source.database, target.database, lambda *_: None)
    finally:
        await source.close()
        await target.close()


@pytest.fixture(scope="module")
async def demo(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[str]:
    """The database of a demo, with thirty days in it and a monitored stream."""
    folder = tmp_path_factory.mktemp("demo")
    async with staged(folder, None, 60.0):
        url = f"sqlite:///{folder}/mimawari.db"
        clock = VirtualClock()
        store = SqlStore(url, clock)
        step = a_step(Status.MONITORING, StreamStatus.LIVE, clock.now())
        await keep(store, a_monitor(DARK, 1, clock.now()), step, clock.now())
        await store.close()
        yield url


async def test_a_demo_goes_round_all_engines_and_comes_back_the_same(
    demo: str, databases: Databases
) -> None:
    place, journeys = demo, []
    for engine in ("postgresql", "mariadb", "sqlite"):
        following = databases.fresh(engine)
        journeys.append(await copy(place, following))
        place = following
    first = journeys[0]
    assert {one.table for one in first if one.rows} >= MANY
    assert sum(one.rows for one in first) > 5000
    assert journeys == [first] * 3
    assert dump(place) == dump(demo)


def dump(url: str) -> dict[str, list[str]]:
    """Read all that a file holds, by itself."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as file:
        return {
            table.name: sorted(
                repr([plain(value) for value in row])
                for row in file.execute(f"SELECT * FROM {table.name}")
            )
            for table in list_tables()
        }


def plain(value: object) -> object:
    """Take an object for what it says: engines that know JSON put its names in another order."""
    if isinstance(value, str) and value.startswith("{"):
        return sorted(json.loads(value).items())
    return value


async def test_every_table_of_the_database_is_known(tmp_path: Path) -> None:
    store = SqlStore(await lay_tables(tmp_path / "a.db"), VirtualClock())
    names = await store.database.look(lambda look: inspect(look.connection).get_table_names())
    await store.close()
    assert {*names} == {table.name for table in list_tables()} | {"alembic_version"}


async def test_new_rows_are_numbered_after_those_that_were_copied(
    engine: str, databases: Databases, demo: str
) -> None:
    url = databases.fresh(engine)
    await copy(demo, url)
    store = SqlStore(url, VirtualClock())
    async with store.database.write() as session:
        (old,) = (await session.execute(select(ips).order_by(ips.c.id.desc()).limit(1))).mappings()
        given = {**old, "name": "another", "keyword": "another"}
        del given["id"]
        await session.execute(insert(ips), given)
        query = select(ips.c.id).where(ips.c.name == "another")
        assert (await session.execute(query)).scalar_one() > old["id"]
    await store.close()


async def test_a_database_that_is_not_empty_is_left_as_it_is(
    demo: str, databases: Databases
) -> None:
    url = databases.fresh("sqlite")
    await copy(demo, url)
    before = dump(url)
    with pytest.raises(BadInput, match="is not empty"):
        await copy(demo, url)
    assert dump(url) == before


async def test_what_is_not_up_to_date_or_not_known_is_not_copied(
    tmp_path: Path, databases: Databases
) -> None:
    with pytest.raises(BadInput, match="run `mimawari db upgrade` on it first"):
        await copy(databases.fresh("sqlite"), databases.fresh("sqlite"))
    url = await lay_tables(tmp_path / "a.db")
    with closing(sqlite3.connect(tmp_path / "a.db")) as file:
        file.execute("CREATE TABLE mine (a)")
    with pytest.raises(BadInput, match="does not know: mine; remove them"):
        await copy(url, databases.fresh("sqlite"))


def test_the_command_shows_what_it_copied_and_what_to_do_next(
    terminal: Terminal, databases: Databases
) -> None:
    assert terminal.run("db", "upgrade").code == 0
    assert terminal.run("hot", "ip", "add", "鬼滅の刃").code == 0
    url = databases.fresh("postgresql")
    said = terminal.run("db", "copy", "--to", url)
    assert said.code == 0, said.err
    assert "ip_metadata" in said.out
    assert "Set MIMAWARI_DATABASE_URL to it" in said.out
    assert "secret" not in said.out
    again = terminal.run("db", "copy", "--to", url)
    assert (again.code, "is not empty" in again.err) == (2, True)
    same = terminal.run("db", "copy", "--from", url, "--to", url)
    assert (same.code, "the same database" in same.err) == (2, True)
    found = json.loads(terminal.run("db", "info", "--json", MIMAWARI_DATABASE_URL=url).out)
    assert found["ip_metadata"] == 1
