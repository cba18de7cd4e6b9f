"""404s in a row are the market's trouble until something that must be there is 404 or not."""

from collections import Counter
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs

import pytest
from sqlalchemy import select

from mimawari.kernel.incidents import SITE, list_incidents
from mimawari.kernel.job import State
from mimawari.kernel.not_found import RunState
from mimawari.sites import mercari
from mimawari.store.sql.tables import not_found, outbox
from mimawari.watches.prices import products
from mimawari.watches.prices.products import DETAIL, LIST
from mimawari.watches.prices.tables import alerts, removed, sold_days
from tests.conftest import Databases
from tests.prices.test_rounds import Scene, opened

SIX_HOURS = 6 * 3600
SUBJECT = f"{SITE}:{mercari.NAME}"


@pytest.fixture
async def scene(databases: Databases) -> AsyncIterator[Scene]:
    """One of the test's own."""
    async with opened(databases) as one:
        yield one


async def ask_for_all(scene: Scene) -> list[int]:
    """Have the page of everything on sale read; return the ids of the results."""
    ids = [row.id for row in await scene.rows() if row.selling_status == 1]
    await scene.store.queue.put([products.detail_job(one) for one in ids])
    return ids


def plain(rows: list[Any]) -> dict[int, dict[str, Any]]:
    """Return results by their ids, but for when they changed."""
    return {row.id: {**row._asdict(), "updated_at": None} for row in rows}


def find_doubled(scene: Scene) -> list[str]:
    """List the own pages that were read twice between two crawls, by the market's own log alone.

    The control request reads one of them, too.
    """
    doubled: list[str] = []
    read: set[str] = set()
    for one in scene.asked("/"):
        item = parse_qs(one["query"]).get("id", [one["path"].rpartition("/")[2]])[0]
        if one["searched"]:
            read = set()
        elif one["path"].startswith(("/items/get", "/v1/marketplaces")) and not one["order"]:
            doubled += [item] if item in read else []
            read.add(item)
    return doubled[1:]


async def is_held(scene: Scene) -> bool:
    """Say whether the site is on hold for its 404s."""
    run = await scene.store.not_found.find(mercari.NAME)
    return run is not None and run.state is RunState.HELD


async def test_a_market_that_answers_404_to_everything_is_held_and_loses_no_result(
    scene: Scene,
) -> None:
    """Six hours of it: one incident, every result as it was, and each is read once afterwards."""
    await scene.add(target_price=100_000)
    await scene.pass_time(minutes=5)
    before = plain(await scene.rows())
    days = await scene.rows(sold_days)
    open_alerts = [row.id for row in await scene.rows(alerts) if row.closed_at is None]
    assert open_alerts
    scene.order(do="gone", for_s=SIX_HOURS)
    ids = await ask_for_all(scene)
    assert len(ids) > 5
    open_for = []
    for _ in range(8 * 12):
        await scene.pass_time(minutes=5)
        subjects = [one.subject for one in await list_incidents(scene.store, 3)]
        assert subjects in ([], [SUBJECT])
        open_for.append(bool(subjects))
        if await is_held(scene):
            assert plain(await scene.rows()) == before
            assert await scene.rows(removed) == []
            assert await scene.rows(sold_days) == days
    assert open_for[0]
    assert not open_for[-1]
    assert sum(a != b for a, b in pairwise(open_for)) == 1
    assert len([one for one in scene.asked("/") if one["order"]]) <= 12
    closed = [row.id for row in await scene.rows(alerts) if row.closed_at is not None]
    async with scene.store.read() as reader:
        kinds = (await reader.execute(select(outbox.c.kind))).scalars().all()
    assert kinds.count("prices.alert_closed") == len(closed)
    read = Counter(job.args["mercariCrawlResultId"] for job in await scene.jobs(DETAIL, State.DONE))
    assert set(ids) <= set(read)
    assert find_doubled(scene) == []
    dead = await scene.jobs(LIST, State.FAILED)
    assert dead == []


async def test_a_search_that_is_404_counts_and_ends_as_a_hold_not_as_dead_letters(
    scene: Scene,
) -> None:
    await scene.add()
    await scene.add("another")
    scene.order(do="gone", for_s=SIX_HOURS)
    await scene.pass_time(minutes=30)
    assert await is_held(scene)
    assert await scene.jobs(LIST, State.FAILED) == []
    assert [one.subject for one in await list_incidents(scene.store, 3)] == [SUBJECT]


async def test_what_is_gone_while_others_are_there_is_taken_out_and_its_alert_ends(
    scene: Scene,
) -> None:
    await scene.add(target_price=100_000)
    await scene.pass_time(minutes=5)
    [opened_at_first] = [row for row in await scene.rows(alerts) if row.kind == "under_target"]
    scene.order(do="gone", path="/items/get", times=1)
    ids = await ask_for_all(scene)
    await scene.pass_time(seconds=1)
    assert len(await scene.rows(removed)) == 1
    async with scene.store.read() as reader:
        [waits] = (await reader.execute(select(not_found))).all()
    assert waits.kind == DETAIL
    await scene.pass_time(minutes=5)
    async with scene.store.read() as reader:
        assert (await reader.execute(select(not_found))).all() == []
    [out] = await scene.rows(removed)
    assert (out.kind, out.id in ids) == ("gone", True)
    assert opened_at_first.id in {row.id for row in await scene.rows(alerts)}


async def test_a_lone_404_is_settled_after_ten_minutes_by_a_search(scene: Scene) -> None:
    await scene.add()
    await scene.pass_time(minutes=12)
    scene.order(do="gone", path="/items/get", times=1)
    [first, *_] = [row for row in await scene.rows() if row.selling_status == 1]
    await scene.store.queue.put([products.detail_job(first.id)])
    await scene.pass_time(minutes=9)
    run = await scene.store.not_found.find(mercari.NAME)
    assert run is not None
    assert run.answers == 1
    before = len(scene.asked("/v2/entities:search"))
    await scene.pass_time(minutes=2)
    run = await scene.store.not_found.find(mercari.NAME)
    assert run is not None
    assert run.answers == 0
    assert len(scene.asked("/v2/entities:search")) == before + 1
