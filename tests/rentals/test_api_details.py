"""One property over the API: read at once where the limit gives leave, else in its turn."""

from datetime import timedelta

import pytest

from mimawari.kernel.job import State
from mimawari.watches.rentals import tasks
from tests.app.ground import check_error
from tests.rentals.api_ground import NOBODY, START, Rooms
from tests.rentals.scene import ADDRESS, AREA


def id_of(url: str) -> str:
    return url.rstrip("/").rpartition("/")[2]


async def test_with_a_free_token_a_property_is_read_and_shown(rooms: Rooms) -> None:
    url = rooms.urls()[0]
    response = await rooms.send("/scrape", {"url": url})
    assert response.status_code == 200, response.text
    found = response.json()
    (truth,) = rooms.scene.world.parts["rentals"].truth({"id": id_of(url)})["rooms"]
    assert found["property_id"] == id_of(url)
    assert found["building_name"] == truth["building_name"]
    assert found["detail_at"] == "2026-01-05T12:00:00Z"
    assert found["stations"][0]["walk_minutes"] >= 1
    assert isinstance(found["images"], list)
    assert found["waiting"] is None
    (job,) = await rooms.scene.jobs()
    assert job.args["caller"] == "api"
    assert await rooms.get(f"/properties/{id_of(url)}") == found


async def test_with_the_limit_used_up_nobody_is_kept_waiting_for_12_minutes(rooms: Rooms) -> None:
    first, second = rooms.urls()[:2]
    await rooms.send("/scrape", {"url": first})
    response = await rooms.send("/scrape", {"url": second})
    assert response.status_code == 202, response.text
    later = response.json()
    job_id = later.pop("job_id")
    assert later == {
        "property_id": id_of(second),
        "next_at": "2026-01-05T12:12:00Z",
        "reason": "hourly_limit",
        "blocked_by": "limit rentals.detail",
    }
    assert rooms.scene.clock.now() == START
    again = (await rooms.send("/scrape", {"url": second})).json()
    assert again["job_id"] == job_id
    assert len(rooms.scene.details()) == 1
    await rooms.scene.pass_time(minutes=13)
    assert (await rooms.get(f"/properties/{id_of(second)}"))["detail_at"] == again["next_at"]


async def test_a_token_that_is_free_soon_is_waited_for(rooms: Rooms) -> None:
    first, second = rooms.urls()[:2]
    await rooms.send("/scrape", {"url": first})
    await rooms.scene.pass_time(minutes=11, seconds=30)
    response = await rooms.send("/scrape", {"url": second})
    assert response.status_code == 200, response.text
    assert response.json()["detail_at"] == "2026-01-05T12:12:00Z"


async def test_what_a_person_asks_for_goes_before_what_a_list_has_enqueued(rooms: Rooms) -> None:
    await rooms.walk()
    newest = (await rooms.scene.jobs())[-1]
    response = await rooms.send("/scrape", {"url": newest.args["url"]})
    assert response.status_code == 200, response.text
    (asked,) = rooms.scene.details()
    assert newest.args["property_id"] in asked["path"]


async def test_without_a_worker_a_property_is_promised(rooms: Rooms) -> None:
    response = await rooms.post("/scrape", url=rooms.urls()[0])
    assert response.status_code == 202
    assert "mimawari serve" in response.json()["reason"]
    assert rooms.scene.details() == []


async def test_one_that_waits_in_the_queue_says_for_what(rooms: Rooms) -> None:
    await rooms.walk(limit=1)
    (shown,) = (await rooms.get("/properties"))["properties"]
    await rooms.api.store.limiter.acquire(rooms.scene.rounds.watches.limit(tasks.DETAIL), "test")
    waiting = (await rooms.get(f"/properties/{shown['property_id']}"))["waiting"]
    assert (waiting["reason"], waiting["blocked_by"]) == ("hourly_limit", "limit rentals.detail")
    assert waiting["next_at"] == "2026-01-05T12:12:00Z"


async def test_one_that_there_never_was_is_not_found_and_asked_for_once(rooms: Rooms) -> None:
    for _ in range(2):
        response = await rooms.send("/scrape", {"url": NOBODY})
        assert "never asked again" in check_error(response, 404, "not_found")
        await rooms.scene.pass_time(minutes=13)
    assert len(rooms.scene.details()) == 1
    (job,) = await rooms.scene.jobs()
    assert job.state is State.PERMANENT_FAIL
    assert (await rooms.get("/properties"))["properties"] == []


async def test_one_that_is_gone_is_not_found_on_any_path_and_never_asked_for_again(
    rooms: Rooms,
) -> None:
    await rooms.walk(limit=1)
    (shown,) = (await rooms.get("/properties"))["properties"]
    rooms.scene.order(do="gone", path="/rent/detail/", times=1)
    gone = await rooms.send("/scrape", {"url": shown["url"]})
    check_error(gone, 404, "not_found")
    found = await rooms.get(f"/properties/{shown['property_id']}")
    assert found["status"] == "ended"
    assert found["ended_at"] == found["gone_at"] == "2026-01-05T12:00:00Z"
    for url in (shown["url"], shown["url"].rstrip("/")):
        check_error(await rooms.send("/scrape", {"url": url}), 404, "not_found")
    again = await rooms.walk(limit=1)
    assert (again["new_to_queue"], again["already_known"]) == (0, 1)
    await rooms.scene.pass_time(hours=30)
    assert len(rooms.scene.details()) == 1
    assert (await rooms.get("/queue/stats"))["permanent_fail"] == 1


async def test_a_block_puts_the_property_off_and_holds_everybody(rooms: Rooms) -> None:
    rooms.scene.order(do="blocked", path="/rent/detail/", times=1)
    response = await rooms.send("/scrape", {"url": rooms.urls()[0]})
    assert response.status_code == 202, response.text
    assert response.json()["next_at"] == "2026-01-05T13:00:00Z"
    assert "block" in response.json()["reason"]
    listed = await rooms.send("/scrape/list", {"url": AREA})
    assert listed.status_code == 202
    assert listed.json()["next_at"] == "2026-01-05T12:05:00Z"


async def test_a_page_that_is_not_understood_is_told_with_its_reason(rooms: Rooms) -> None:
    rooms.scene.order(do="garbage", path="/rent/detail/", times=1)
    response = await rooms.send("/scrape", {"url": rooms.urls()[0]})
    assert "the property could not be read" in check_error(response, 422, "not_read")


async def test_a_property_that_takes_too_long_is_left_to_its_job(rooms: Rooms) -> None:
    # A worker is said to be there, but does nothing.
    await rooms.say_alive()
    response = await rooms.send("/scrape", {"url": rooms.urls()[0]}, rooms.lists_only)
    assert response.status_code == 202
    assert response.json()["reason"] == "waits for a free worker"
    assert rooms.scene.clock.now() == START + timedelta(seconds=40)


@pytest.mark.parametrize(
    "url",
    [
        "",
        AREA,
        f"{ADDRESS}/rent/detail/",
        f"{ADDRESS}/rent/detail/{'0' * 43}/",
        f"{ADDRESS}/rent/detail/{'g' * 44}/",
        f"https://example.com/rent/detail/{'0' * 44}/",
        f"{ADDRESS}:81/rent/detail/{'0' * 44}/",
        f"file:///rent/detail/{'0' * 44}/",
        f"{NOBODY}x",
    ],
)
async def test_an_address_that_is_no_property_is_refused(calm: Rooms, url: str) -> None:
    message = check_error(await calm.post("/scrape", url=url), 422, "bad_input")
    assert "address" in message or "44 hex digits" in message
    assert await calm.scene.jobs() == []


async def test_a_call_without_an_address_is_refused(calm: Rooms) -> None:
    for body in ({}, {"url": None}, {"url": [NOBODY]}, {"url": NOBODY, "limit": 5}):
        check_error(await calm.post("/scrape", **body), 422, "bad_input")
