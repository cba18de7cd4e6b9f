"""Every row of the table of errors, and every rule of operation that forbids something."""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from mimawari.kernel.context import Context
from mimawari.kernel.job import State
from mimawari.settings import Settings
from mimawari.sites import yahoo_realestate
from mimawari.watches import INSTALLED
from tests.rentals.scene import AREA, HOUR, LARGE_AREA, Scene, open_scene

MINUTE = timedelta(minutes=1)
HEALTH = "/rent/"


def at(seen: dict[str, Any]) -> datetime:
    """Tell when the site was asked."""
    return datetime.fromisoformat(seen["at"])


def gaps(asked: list[dict[str, Any]]) -> list[timedelta]:
    """Tell how far apart requests came."""
    return [at(after) - at(before) for before, after in pairwise(asked)]


async def test_404_permanent_becomes_permanent_fail_and_is_not_retried(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.walk()
    [job] = await scene.jobs(state=State.PERMANENT_FAIL)
    await scene.pass_time(days=2)
    asked = [one["path"] for one in scene.details() if one["status"] in {404, 410}]
    assert job.attempts == 1
    assert len(asked) > 1
    assert len(asked) == len(set(asked))


async def test_waf_detected_is_retried_after_1_hour_and_the_worker_pauses_5_minutes(
    scene: Scene,
) -> None:
    await scene.walk()
    scene.order(do="blocked", path="/rent/detail/", times=1)
    await scene.pass_time(hours=12)
    [blocked] = [one for one in scene.details() if one["status"] == 500]
    same = [one for one in scene.details() if one["path"] == blocked["path"]]
    assert len(same) == 2
    assert at(same[1]) - at(blocked) >= HOUR
    after = [one for one in scene.asked() if at(one) > at(blocked)]
    assert at(after[0]) - at(blocked) >= 5 * MINUTE
    [job] = [one for one in await scene.jobs() if one.target and one.target[8:] in same[1]["path"]]
    assert (job.state, job.attempts) == (State.DONE, 2)


@pytest.mark.parametrize("order", [{"do": "status", "code": 500}, {"do": "reset"}])
async def test_an_ordinary_error_backs_off_5m_15m_1h_4h_12h(
    scene: Scene, order: dict[str, Any]
) -> None:
    property_id = "0" * 44
    scene.order(path=f"/rent/detail/{property_id}", **order)
    await scene.ask(property_id)
    await scene.pass_time(hours=24)
    waits = [5 * MINUTE, 15 * MINUTE, HOUR, 4 * HOUR]
    found = gaps(scene.details())
    assert len(found) == len(waits)
    # The limiter gives the first retry leave after 12 minutes only.
    assert found[0] == 12 * MINUTE
    assert found[1:] == waits[1:]


async def test_retries_used_up_after_5_attempts_end_as_failed(scene: Scene) -> None:
    property_id = "0" * 44
    scene.order(do="status", code=500, path=f"/rent/detail/{property_id}")
    await scene.ask(property_id)
    await scene.pass_time(days=3)
    [job] = await scene.jobs()
    assert (job.state, job.attempts, len(scene.details())) == (State.FAILED, 5, 5)
    assert "attempt 5 of 5" in str(job.reason)


async def test_blocks_count_towards_the_5_attempts_too(scene: Scene) -> None:
    property_id = "0" * 44
    scene.order(do="blocked", path=f"/rent/detail/{property_id}")
    await scene.ask(property_id)
    await scene.pass_time(days=3)
    [job] = await scene.jobs()
    assert (job.state, job.attempts, len(scene.details())) == (State.FAILED, 5, 5)


async def test_the_breaker_opens_on_the_second_block_in_a_row(scene: Scene) -> None:
    await scene.walk()
    scene.order(do="blocked", path="/rent/detail/", times=2)
    await scene.pass_time(hours=6)
    first, second = [one for one in scene.details() if one["status"] == 500]
    following = [one for one in scene.details() if at(one) > at(first)]
    assert following[0] == second
    assert at(following[1]) - at(second) >= HOUR


async def test_a_health_check_comes_before_the_first_request_after_a_block(scene: Scene) -> None:
    await scene.walk()
    scene.order(do="blocked", path="/rent/detail/", times=1)
    await scene.pass_time(hours=2)
    paths = [one["path"] for one in scene.asked()]
    statuses = [one["status"] for one in scene.asked()]
    blocked = statuses.index(500)
    assert paths[blocked + 1] == HEALTH
    assert paths.count(HEALTH) == 1


async def test_while_the_health_check_fails_no_detail_is_asked_and_none_uses_an_attempt(
    scene: Scene,
) -> None:
    await scene.walk()
    scene.order(do="blocked", for_s=6 * 3600)
    await scene.pass_time(hours=6)
    blocked = [one for one in scene.asked() if one["status"] == 500]
    assert [one["path"] for one in blocked[1:]] == [HEALTH] * len(blocked[1:])
    assert len(blocked) > 3
    assert all(gap >= 5 * MINUTE for gap in gaps(blocked))
    await scene.pass_time(hours=20)
    assert max(job.attempts for job in await scene.jobs(state=State.DONE)) == 2


async def test_a_block_on_a_list_pauses_details_too(scene: Scene) -> None:
    await scene.walk()
    scene.order(do="blocked", path="/rent/search/", times=1)
    await scene.pass_time(minutes=9)
    await scene.walk(LARGE_AREA, minutes=75)
    [blocked] = [one for one in scene.asked() if one["status"] == 500]
    after = [one for one in scene.asked() if at(one) > at(blocked)]
    assert at(after[0]) - at(blocked) >= 5 * MINUTE
    lists = [one for one in after if one["path"].startswith("/rent/search/")]
    assert at(lists[0]) - at(blocked) >= HOUR


async def test_a_500_without_the_words_is_no_block(scene: Scene) -> None:
    await scene.walk()
    scene.order(do="status", code=500, path="/rent/detail/", times=2)
    await scene.pass_time(hours=2)
    assert await scene.store.breaker.list() == []
    assert len(scene.details()) == 11


async def test_a_page_that_is_not_understood_is_kept_for_a_person(scene: Scene) -> None:
    scene.order(do="changed_layout", path="/rent/detail/", times=1)
    await scene.walk()
    [job] = await scene.jobs(state=State.FAILED)
    assert "page not understood" in str(job.reason)
    assert job.page_bytes


@pytest.mark.parametrize("given", ["6", "0", "-1", "100"])
def test_forbidden_raising_the_5_an_hour(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIMAWARI_RENTALS_DETAILS_PER_HOUR", given)
    with pytest.raises(ValidationError, match="lowered but never raised"):
        Settings()


async def test_the_5_an_hour_may_be_lowered(scene: Scene) -> None:
    async with open_scene(scene.store, scene.clock, rentals_details_per_hour=2) as slower:
        await slower.walk()
        await slower.pass_time(hours=3)
        assert gaps(slower.details()) == [HOUR / 2] * 6


async def test_forbidden_a_detail_outside_the_queue_and_the_limiter(scene: Scene) -> None:
    """Whoever asks, as often as they like: the site sees one detail each 12 minutes."""
    await scene.walk(LARGE_AREA, limit=300)
    for property_id in list(await scene.rows())[:50]:
        await scene.ask(property_id)
    await scene.pass_time(hours=5)
    assert all(gap >= 12 * MINUTE for gap in gaps(scene.details()))
    assert len(scene.details()) == 26


async def test_forbidden_a_client_that_asks_without_a_limit(scene: Scene) -> None:
    """The client of the site cannot be used without leave: the way out refuses it."""
    nobody = Context(scene.store, scene.clock, scene.rounds.watches, scene.http)
    with pytest.raises(LookupError, match="without a limit"):
        await yahoo_realestate.fetch_list(nobody.http, AREA, site_url=scene.settings.rentals_url)
    assert scene.asked() == []


def test_forbidden_switching_the_scheduler_or_the_worker_off() -> None:
    """No setting does, and both are parts of the watch that cannot be left out."""
    names = [name for name in Settings.model_fields if name.startswith("rentals_")]
    assert not any("enabled" in name or "disable" in name for name in names)
    kinds = {task.kind for one in INSTALLED for task in one.tasks}
    assert {"rentals.detail", "rentals.list", "rentals.daily"} <= kinds


async def test_forbidden_turning_permanent_fail_back_into_a_retry(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.walk()
    [job] = await scene.jobs(state=State.PERMANENT_FAIL)
    property_id = str(job.args["property_id"])
    assert not await scene.store.queue.requeue(job.id)
    # Not by asking again, not by a list that still shows it, and not by the daily round.
    await scene.ask(property_id)
    await scene.walk()
    await scene.pass_time(days=2)
    asked = [one for one in scene.details() if property_id in one["path"]]
    assert len(asked) == 1
    assert (await scene.rows())[property_id].status == "ended"


async def test_forgetting_the_job_does_not_forget_that_its_property_is_gone(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.walk()
    [job] = await scene.jobs(state=State.PERMANENT_FAIL)
    await scene.store.queue.purge(State.PERMANENT_FAIL, scene.clock.now())
    assert await scene.store.queue.find(job.id) is None
    await scene.ask(str(job.args["property_id"]))
    await scene.pass_time(hours=2)
    asked = [one for one in scene.details() if str(job.args["property_id"]) in one["path"]]
    assert len(asked) == 1


async def test_a_preventive_pause_comes_after_so_many_details(scene: Scene) -> None:
    async with open_scene(
        scene.store, scene.clock, rentals_rest_after=3, rentals_rest_for=2 * HOUR
    ) as resting:
        await resting.walk()
        await resting.pass_time(hours=8)
        found = gaps(resting.details())
    assert [gap >= 2 * HOUR for gap in found[:6]] == [False, False, True, False, False, True]
