"""404s in a row are the site's trouble until something that must be there is 404 or not."""

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from sqlalchemy import select

from mimawari.kernel.incidents import SITE, list_incidents
from mimawari.kernel.job import State
from mimawari.kernel.not_found import RunState
from mimawari.kernel.why import why
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.store.sql.tables import not_found, outbox
from mimawari.watches.rentals import lists, tasks
from mimawari.watches.rentals.tables import changes, properties, snapshots
from tests.rentals.api_ground import Rooms
from tests.rentals.scene import HOUR, LARGE_AREA, Scene, open_scene

SIX_HOURS = 6 * 3600
NAME = "yahoo_realestate"
SUBJECT = f"{SITE}:{NAME}"
STEP = timedelta(minutes=4)


async def told(scene: Scene) -> list[str]:
    """List of which properties people were told that they are off the market."""
    query = select(outbox.c.key).where(outbox.c.kind == "rentals.ended").order_by(outbox.c.id)
    async with scene.store.read() as reader:
        return [key.removeprefix("rentals:") for key in (await reader.execute(query)).scalars()]


def living(scene: Scene) -> set[str]:
    """List the rooms that the site has, by its own word."""
    return {room["id"] for room in scene.world.parts["rentals"].truth({})["rooms"]}


async def ended_rows(scene: Scene) -> set[str]:
    """List the properties that are kept as ended."""
    return {key for key, row in (await scene.rows()).items() if row.status == "ended"}


async def called_gone(scene: Scene) -> set[str]:
    """List the properties of which anything that is kept says that they are gone."""
    queries = (
        select(properties.c.property_id).where(properties.c.gone_at.is_not(None)),
        select(changes.c.property_id).where(changes.c.kind == "status"),
        select(snapshots.c.property_id).where(snapshots.c.status == "ended"),
    )
    found = await ended_rows(scene)
    async with scene.store.read() as reader:
        for query in queries:
            found |= set((await reader.execute(query)).scalars())
    dead = await scene.jobs(state=State.PERMANENT_FAIL)
    return found | {str(job.args["property_id"]) for job in dead}


async def is_held(scene: Scene) -> bool:
    """Say whether the site is on hold for its 404s."""
    run = await scene.store.not_found.find(NAME)
    return run is not None and run.state is RunState.HELD


async def watched(scene: Scene, span: timedelta) -> list[tuple[bool, bool]]:
    """Let time pass; tell at each step whether the site was on hold, and an incident open."""
    found = []
    until = scene.clock.now() + span
    while scene.clock.now() < until:
        await scene.rounds.pass_time(STEP)
        held = await is_held(scene)
        if held:
            assert await called_gone(scene) & living(scene) == set()
        subjects = [one.subject for one in await list_incidents(scene.store, 3)]
        assert subjects in ([], [SUBJECT])
        found.append((held, bool(subjects)))
    return found


def count_spells(flags: list[bool]) -> int:
    """Count how often something began."""
    return sum(now and not before for before, now in zip([False, *flags], flags, strict=False))


async def test_a_site_that_answers_404_to_everything_is_held_and_no_room_is_called_gone(
    scene: Scene,
) -> None:
    """Six hours of it: one incident; then every room is read once, and none was lost."""
    await scene.walk()
    await scene.pass_time(hours=2)
    rooms = await scene.rows()
    scene.order(do="gone", for_s=SIX_HOURS)
    flags = await watched(scene, timedelta(hours=9))
    assert count_spells([held for held, _ in flags]) == 1
    assert count_spells([is_open for _, is_open in flags]) == 1
    assert flags[-1] == (False, False)
    assert len([one for one in scene.asked() if one["order"]]) <= 12
    await scene.pass_time(hours=9)
    assert await called_gone(scene) & living(scene) == set()
    assert set(await told(scene)) & living(scene) == set()
    asked = [one["path"].split("/")[3] for one in scene.details() if not one["order"]]
    assert set(rooms) - set(asked) == set()
    # One of them was the control request, too.
    assert len(asked) <= len(set(asked)) + 1
    assert await scene.jobs(state=State.PENDING) == []


async def test_the_sixth_request_goes_to_a_room_that_a_list_showed_within_the_hour(
    scene: Scene,
) -> None:
    """It is 404 as well, so a list is asked, and then a room that it shows at that moment."""
    await scene.walk()
    await scene.pass_time(hours=2)
    scene.order(do="gone", path="/rent/detail/", for_s=SIX_HOURS)
    since = scene.clock.now()
    await scene.pass_time(minutes=40)
    await scene.walk()
    await scene.pass_time(minutes=35)
    asked = [one for one in scene.asked() if datetime.fromisoformat(one["at"]) > since]
    missed = [one["path"] for one in asked if one["order"]]
    shown = (await scene.rows())[missed[5].split("/")[3]]
    assert len(set(missed[:6])) == 6
    assert shown.last_seen_at > since
    kinds = [one["path"].split("/")[2] for one in asked]
    assert kinds[-4:] == ["detail", "search", "search", "detail"]
    assert await is_held(scene)


async def test_the_list_is_asked_where_no_list_was_read_within_the_hour(scene: Scene) -> None:
    await scene.walk()
    await scene.pass_time(hours=2)
    scene.order(do="gone", for_s=SIX_HOURS)
    await scene.pass_time(hours=1, minutes=10)
    missed = [one["path"] for one in scene.asked() if one["order"]]
    assert [path.split("/")[2] for path in missed] == [*["detail"] * 5, "search"]
    assert await is_held(scene)


async def test_pages_that_are_404_while_lists_go_on_hold_the_site_too(scene: Scene) -> None:
    """The list answers, and a room that it shows at that moment is 404."""
    await scene.walk()
    await scene.pass_time(hours=2)
    scene.order(do="gone", path="/rent/detail/", for_s=SIX_HOURS)
    flags = await watched(scene, timedelta(hours=10))
    assert count_spells([is_open for _, is_open in flags]) == 1
    await scene.pass_time(hours=8)
    assert (set(await told(scene)) | await called_gone(scene)) & living(scene) == set()


async def test_a_day_on_which_half_the_rooms_go_is_known_as_that(scene: Scene) -> None:
    """Five details an hour, no hold, and everything that went is told once."""
    await scene.walk(LARGE_AREA, limit=100)
    await scene.pass_time(hours=1)
    site = scene.world.parts["rentals"]
    assert isinstance(site, Rentals)
    gone = set(site.remove_rooms(0.5)) & set(await scene.rows())
    flags = await watched(scene, timedelta(hours=20))
    assert flags == [(False, False)] * len(flags)
    await scene.pass_time(hours=4)
    ended = await ended_rows(scene)
    assert len(gone & ended) > 25
    assert not ended & living(scene)
    found = await told(scene)
    assert sorted(found) == sorted(ended)
    asked = [datetime.fromisoformat(one["at"]) for one in scene.details()]
    for place, at in enumerate(asked):
        assert sum(at <= other < at + HOUR for other in asked[place:]) <= 5


async def test_a_404_ends_its_room_at_once_and_is_told_once_another_page_is_there(
    scene: Scene,
) -> None:
    await scene.walk(minutes=10)
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.pass_time(minutes=5)
    [dead] = await scene.jobs(state=State.PERMANENT_FAIL)
    gone = dead.args["property_id"]
    assert await ended_rows(scene) == {gone}
    assert await told(scene) == []
    await scene.pass_time(minutes=12)
    assert await told(scene) == [gone]


async def test_a_lone_404_is_told_after_an_hour_by_the_answer_of_the_list(scene: Scene) -> None:
    await scene.walk(limit=1)
    scene.order(do="gone", path="/rent/detail/", times=1)
    [key] = await scene.rows()
    await scene.ask(key)
    await scene.pass_time(minutes=55)
    assert (await ended_rows(scene), await told(scene)) == ({key}, [])
    await scene.pass_time(minutes=20)
    assert await told(scene) == [key]
    async with scene.store.read() as reader:
        assert (await reader.execute(select(not_found))).all() == []


async def test_a_list_that_was_404_in_the_run_is_walked_over_again(scene: Scene) -> None:
    async with scene.store.edit() as tx:
        await lists.add_list(tx, LARGE_AREA, 30, 3 * HOUR, scene.settings, scene.clock.now())
    await scene.pass_time(hours=2, minutes=50)
    scene.order(do="gone", for_s=SIX_HOURS)
    await scene.pass_time(minutes=30)
    async with scene.store.read() as reader:
        [found] = await lists.list_saved(reader)
    assert found.gone_at is not None
    await scene.pass_time(hours=4)
    assert await is_held(scene)
    async with scene.store.read() as reader:
        [found] = await lists.list_saved(reader)
    assert found.gone_at is None
    await scene.pass_time(hours=8)
    assert len(await scene.jobs(lists.KIND, State.DONE)) >= 3
    assert await scene.jobs(lists.KIND, State.PERMANENT_FAIL) == []


async def test_a_hold_is_doubled_outlives_a_restart_and_says_why(scene: Scene) -> None:
    await scene.walk()
    await scene.pass_time(hours=2)
    scene.order(do="gone", for_s=SIX_HOURS * 2)
    await scene.pass_time(hours=2)
    async with open_scene(scene.store, scene.clock) as restarted:
        restarted.order(do="gone", for_s=SIX_HOURS * 2)
        await restarted.pass_time(hours=8)
        asked = [*scene.asked(), *restarted.asked()]
    requests = [datetime.fromisoformat(one["at"]) for one in asked if one["order"]]
    apart = [(b - a) // timedelta(minutes=1) for a, b in pairwise(requests[5:])]
    assert apart[:4] == [30, 60, 120, 120]
    [waits, *_] = await scene.jobs(state=State.PENDING)
    answer = await why(scene.store, scene.clock, scene.rounds.watches, waits.id)
    assert answer is not None
    assert "404 to everything" in answer.reason
    assert answer.blocked_by == f"breaker {NAME}"
    assert answer.next_at is not None
    assert answer.next_at > scene.clock.now()


@pytest.mark.parametrize("do", ["gone", "blocked"])
async def test_a_front_page_that_is_404_after_a_block_costs_no_list_and_no_room(
    scene: Scene, do: str
) -> None:
    await scene.walk()
    scene.order(do="blocked", path="/rent/detail/", times=1)
    await scene.pass_time(minutes=14)
    scene.order(do=do, path="/rent/", times=1)
    await scene.pass_time(hours=4)
    assert await scene.jobs(state=State.PERMANENT_FAIL) == []
    assert await scene.jobs(tasks.LIST, State.PERMANENT_FAIL) == []


async def test_the_api_calls_no_room_gone_during_a_hold_and_says_what_it_waits_for(
    rooms: Rooms,
) -> None:
    await rooms.walk(limit=20)
    await rooms.scene.pass_time(minutes=30)
    rooms.scene.order(do="gone", for_s=SIX_HOURS)
    await rooms.scene.pass_time(hours=2)
    assert await is_held(rooms.scene)
    gauge = await rooms.get("/queue/limiter")
    assert gauge["breaker"]["state"] == "open"
    assert "404 to everything" in gauge["breaker"]["reason"]
    ended = (await rooms.get("/properties", status="ended"))["properties"]
    assert {one["property_id"] for one in ended} & living(rooms.scene) == set()
    changed = (await rooms.get("/changes/recent", kind="status"))["changes"]
    assert {one["property_id"] for one in changed} & living(rooms.scene) == set()
    stats = await rooms.get("/queue/stats")
    assert stats["permanent_fail"] == len(ended)
    await rooms.scene.pass_time(hours=7)
    gauge = await rooms.get("/queue/limiter")
    assert gauge["breaker"]["state"] == "closed"
