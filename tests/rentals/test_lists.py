"""Walking over the site's lists: which pages are asked for, what is enqueued, what is missing."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.errors import BadInput
from mimawari.kernel.job import State
from mimawari.watches.rentals import lists, sync, tasks
from mimawari.watches.rentals.models import Run
from mimawari.watches.rentals.sync import Look
from mimawari.watches.rentals.tables import runs
from tests.rentals.scene import ADDRESS, AREA, HOUR, LARGE_AREA, Scene


async def last_run(scene: Scene) -> Run:
    """Find the walk that began last."""
    async with scene.store.read() as reader:
        query = select(runs).order_by(runs.c.started_at.desc(), runs.c.id.desc())
        return lists.make_run((await reader.execute(query)).first())


def pages(scene: Scene) -> list[dict[str, Any]]:
    """List the list pages that the site was asked for."""
    return scene.asked("/rent/search/")


async def save(scene: Scene, url: str = AREA, every: timedelta = HOUR, limit: int = 5000) -> None:
    """Save a search."""
    async with scene.store.edit() as tx:
        await lists.add_list(tx, url, limit, every, scene.settings, scene.clock.now())


async def test_a_list_enqueues_its_rooms_and_never_asks_for_a_detail_itself(scene: Scene) -> None:
    scene.order(do="slow", path="/rent/detail/", delay_s=1)
    await scene.walk(limit=5)
    run = await last_run(scene)
    assert (run.found, run.new_to_queue, run.already_known) == (5, 5, 0)
    assert (run.pages, run.is_whole) == (1, False)
    assert len(await scene.jobs()) == 5
    assert all(job.args["caller"] == "worker" for job in await scene.jobs())


async def test_a_second_walk_knows_what_the_first_has_found(scene: Scene) -> None:
    await scene.walk(limit=5)
    await scene.walk(limit=7)
    run = await last_run(scene)
    assert (run.new_to_queue, run.already_known) == (2, 5)


async def test_a_list_is_followed_page_by_page_8_to_12_seconds_apart(scene: Scene) -> None:
    await scene.walk(LARGE_AREA, limit=5000)
    run = await last_run(scene)
    truth = scene.world.parts["rentals"].truth({"area": "03/13/13991"})
    assert (run.found, run.is_whole) == (len(truth["rooms"]), True)
    assert run.pages == len(pages(scene)) == 3
    times = [datetime.fromisoformat(one["at"]) for one in pages(scene)]
    assert all(8 <= (b - a).total_seconds() <= 12 for a, b in pairwise(times))


async def test_a_list_is_followed_until_the_limit_of_rooms(scene: Scene) -> None:
    await scene.walk(LARGE_AREA, limit=130)
    run = await last_run(scene)
    assert (run.found, run.pages, run.is_whole) == (130, 2, False)
    assert run.ended_as == "the limit of rooms was reached"


async def test_a_walk_that_begins_in_the_middle_is_not_whole(scene: Scene) -> None:
    await scene.walk(f"{LARGE_AREA}?page=2", limit=5000)
    run = await last_run(scene)
    assert (run.pages, run.is_whole) == (2, False)


async def test_a_page_that_failed_is_asked_again_and_the_walk_goes_on_from_there(
    scene: Scene,
) -> None:
    scene.order(do="status", code=503, path="/rent/search/", times=1, share=1.0)
    await scene.walk(LARGE_AREA, limit=5000, minutes=30)
    run = await last_run(scene)
    assert (run.pages, len(pages(scene)), run.is_whole) == (3, 4, True)


async def test_a_walk_under_way_is_not_begun_a_second_time(scene: Scene) -> None:
    async with scene.store.edit() as tx:
        now = scene.clock.now()
        found = await lists.add_list(tx, AREA, 5, None, scene.settings, now)
        tx.put(*(lists.walk_job(lists.walk_of(found, "test", 5)) for _ in range(3)))
    await scene.pass_time(minutes=5)
    assert len(pages(scene)) == 1


@pytest.mark.parametrize(
    "url",
    ["https://example.com/rent/search/1/", f"{ADDRESS}/rent/detail/{'0' * 44}/", "nonsense", ""],
)
async def test_an_address_that_is_no_list_is_refused(scene: Scene, url: str) -> None:
    with pytest.raises(BadInput):
        await scene.walk(url)


async def test_a_list_that_is_gone_is_never_asked_again(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/search/")
    await save(scene)
    await scene.pass_time(hours=5)
    assert len(pages(scene)) == 1
    [job] = await scene.jobs(tasks.LIST)
    assert job.state is State.PERMANENT_FAIL


async def test_a_saved_search_is_walked_over_at_once_and_then_as_often_as_set(
    scene: Scene,
) -> None:
    await save(scene, every=6 * HOUR)
    await scene.pass_time(hours=20)
    times = [datetime.fromisoformat(one["at"]) for one in pages(scene)]
    assert [round((at - times[0]) / HOUR) for at in times] == [0, 6, 12, 18]


async def test_a_removed_search_is_not_walked_over_any_more(scene: Scene) -> None:
    await save(scene)
    await scene.pass_time(minutes=5)
    async with scene.store.edit() as tx:
        assert await lists.remove_list(tx, 1)
        assert not await lists.remove_list(tx, 2)
    await scene.pass_time(hours=5)
    assert len(pages(scene)) == 1


async def test_missing_from_one_whole_walk_is_not_the_end_but_from_two_it_is(
    scene: Scene,
) -> None:
    """The site's pages move while they are walked over, so one absence proves nothing."""
    start = scene.clock.now().isoformat()
    # No property's own page is read meanwhile, which would tell sooner.
    await scene.store.limiter.hold(tasks.DETAIL, scene.clock.now() + 999 * HOUR, "a test")
    await save(scene, every=6 * HOUR)
    await scene.pass_time(days=4)
    truth = scene.world.parts["rentals"].truth({"area": "06/27/27991", "since": start})
    gone = {one["id"]: datetime.fromisoformat(one["at"]) for one in truth["events"]
            if one["kind"] == "delisted"}  # fmt: skip
    rows = await scene.rows()
    early = [key for key, at in gone.items() if key in rows and scene.clock.now() - at > 13 * HOUR]
    assert len(early) > 3
    for key in early:
        assert rows[key].status == "ended"
        assert 6 * HOUR < rows[key].ended_at - gone[key] <= 12.1 * HOUR
        assert (await scene.story(key))[-1] == ("status", "active", "ended")
    there = {room["id"] for room in truth["rooms"]}
    assert all(row.status == "active" for key, row in rows.items() if key in there)


async def test_one_that_is_seen_again_is_active_again(scene: Scene) -> None:
    await scene.walk()
    key = next(iter(await scene.rows()))
    async with scene.store.edit() as tx:
        look = Look(job_id="job", at=scene.clock.now(), zone=scene.settings.zone)
        await sync.end_missing(tx, [key], look)
    await scene.walk()
    assert [told for told in await scene.story(key) if told[0] == "status"] == [
        ("status", "active", "ended"),
        ("status", "ended", "active"),
    ]
    row = (await scene.rows())[key]
    assert (row.status, row.ended_at) == ("active", None)
