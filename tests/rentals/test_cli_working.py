"""The commands of the rentals watch beside a worker, and what they read on every engine."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx2
import pytest

from mimawari.kernel.clock import RealClock, VirtualClock
from mimawari.kernel.watch import Watches
from mimawari.kernel.worker import ALIVE, Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import queries, watch
from tests.app.terminal import PATIENCE_SECONDS, Said, Terminal
from tests.ready import lay_tables
from tests.rentals.scene import ADDRESS, AREA
from tests.rentals.seeing import keep, on_list, page_of

SITE_STARTS = datetime(2026, 1, 5, 12, tzinfo=UTC)
"""So soon after the site's beginning that there is little to catch up with."""
FIRST, SECOND = "a" * 10 + "0" * 34, "a" * 10 + "1" * 34
LARGE, BELOW, OTHER = "A" + "a" * 9 + "0" * 34, "_" + "b" * 44, "c" * 44


async def test_an_id_is_cut_and_found_alike_on_every_engine(
    store: SqlStore, clock: VirtualClock
) -> None:
    await keep(store, clock.now(), *map(on_list, (FIRST, SECOND, LARGE, BELOW, OTHER)))
    async with store.read() as reader:
        assert await queries.find_id_length(reader, [FIRST]) == 11
        assert await queries.find_id_length(reader, [OTHER]) == 1
        assert await queries.find_id_length(reader, []) == 0
        for prefix, found in (("a", [FIRST, SECOND]), ("_", [BELOW]), ("A", [LARGE]), ("%", [])):
            rows = await queries.list_by_prefix(reader, prefix, 9)
            assert [row.property_id for row in rows] == found
        assert len(await queries.list_by_prefix(reader, "a", 1)) == 1


class Office:
    """A terminal beside a worker, on a site whose time stands still."""

    def __init__(self, data: Path, world: World) -> None:
        self.world = world
        self.terminal = Terminal(data, {"MIMAWARI_RENTALS_URL": ADDRESS, "COLUMNS": "80"})

    async def run(self, *words: str) -> Said:
        """Run a command of the watch while the worker works."""
        return await asyncio.to_thread(self.terminal.run, "rentals", *words)


@pytest.fixture
async def office(tmp_path: Path) -> AsyncIterator[Office]:
    """A terminal beside a worker that is there."""
    clock = RealClock()
    store = SqlStore(await lay_tables(tmp_path / "mimawari.db"), clock)
    still = VirtualClock(SITE_STARTS)
    world = World(still, (Rentals(still, 1),), 1)
    settings = DEFAULTS.model_copy(update={"rentals_url": ADDRESS})
    inside = httpx2.ASGITransport(app=world)
    async with open_ways(settings, store, clock, inside=inside) as ways:
        watches = Watches([watch], settings)
        worker = Worker(store, clock, watches, name="test", http=partial(Fetcher, ways))
        work = asyncio.create_task(worker.run())
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await store.cache.get(ALIVE) is None:
                await asyncio.sleep(0)
        yield Office(tmp_path, world)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    await store.close()


async def test_a_list_is_walked_over_while_the_command_waits(office: Office) -> None:
    said = await office.run("list", AREA, "--limit", "3")
    assert (said.code, said.err) == (0, "")
    facts = dict(line.split("  ", 1) for line in said.out.splitlines())
    counts = {name: value.strip() for name, value in facts.items()}
    assert counts["pages"] == "1, the limit of rooms was reached"
    assert (counts["rooms found"], counts["new in queue"]) == ("3", "3")
    assert counts["known already"] == "0"


async def test_a_property_is_read_and_shown_and_the_next_one_waits(office: Office) -> None:
    rooms = office.world.parts["rentals"].truth({})["rooms"]
    first, second = (room["id"] for room in rooms[:2])
    said = await office.run("scrape", page_of(first))
    assert (said.code, said.err) == (0, "")
    assert f"id          {first}" in said.out
    assert "new   first seen  its page" in said.out
    said = await office.run("scrape", page_of(second))
    if "a worker is at work on it" in said.out:
        # The worker has it in hand for a moment before it learns of the limit.
        said = await office.run("scrape", page_of(second))
    assert (said.code, "It is read at " in said.out) == (0, True)
    assert "no more than 5 details an hour are allowed" in said.out


async def test_programs_are_told_of_a_walk_that_is_over(office: Office) -> None:
    words = ("rentals", "list", AREA, "--limit", "3", "--json")
    told = (await asyncio.to_thread(office.terminal.run_program, *words)).json()
    assert (told["found"], told["new_to_queue"], told["already_known"]) == (3, 3, 0)
    assert (told["url"], told["queue_status"]["is_running"]) == (AREA, True)


async def test_a_property_that_turns_out_to_be_gone_is_a_sentence(office: Office) -> None:
    said = await office.run("scrape", page_of("0" * 44))
    assert "is gone since" in said.refused(code=1)
    said = await office.run("list", f"{ADDRESS}/rent/search/99/99/99999/")
    assert "it is never asked again" in said.refused(code=1)
