"""Lists over the API: walking over one enqueues what is new, and never reads a detail itself."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimawari.ids import new_id
from mimawari.watches.rentals import lists, tasks
from mimawari.watches.rentals.models import MOST_ROOMS
from tests.app.ground import check_error
from tests.conftest import Databases
from tests.rentals.api_ground import START, Rooms, open_rooms
from tests.rentals.scene import ADDRESS, AREA, LARGE_AREA
from tests.servers import ENGINES

NO_LIST = f"{ADDRESS}/rent/search/99/99/99999/"


async def test_a_list_call_enqueues_what_is_new_and_reads_no_detail(rooms: Rooms) -> None:
    found = await rooms.walk(limit=5)
    run_id = found.pop("run_id")
    assert found == {
        "list_id": 1,
        "pages": 1,
        "found": 5,
        "refused": 0,
        "new_to_queue": 5,
        "already_known": 0,
        "is_whole": False,
        "started_at": "2026-01-05T12:00:00Z",
        "ended_at": "2026-01-05T12:00:00Z",
        "ended_as": "the limit of rooms was reached",
        "url": AREA,
        "queue_status": {
            "pending": 5,
            "processing": 0,
            "done": 0,
            "failed": 0,
            "permanent_fail": 0,
            "is_running": True,
        },
    }
    assert rooms.scene.details() == []
    assert len(await rooms.scene.jobs()) == 5
    assert await rooms.get(f"/scrape/list/{run_id}") == {"run_id": run_id, **found}


async def test_a_second_call_knows_what_the_first_has_found(rooms: Rooms) -> None:
    first = await rooms.walk(limit=5)
    second = await rooms.walk(limit=5)
    assert second["run_id"] != first["run_id"]
    assert (second["new_to_queue"], second["already_known"], second["found"]) == (0, 5, 5)
    assert second["queue_status"]["pending"] == 5


async def test_a_list_of_several_pages_is_walked_over_to_its_end(rooms: Rooms) -> None:
    found = await rooms.walk(LARGE_AREA, MOST_ROOMS)
    asked = rooms.scene.asked("/rent/search/")
    assert found["pages"] == len(asked) == 3
    assert found["found"] == found["new_to_queue"] == len(rooms.urls(LARGE_AREA)) > 100
    assert (found["is_whole"], found["ended_as"]) == (True, "the last page was read")
    assert rooms.scene.clock.now() == START + timedelta(seconds=20)
    assert rooms.scene.details() == []


async def test_a_worker_may_begin_with_the_new_ones_before_the_call_has_answered(
    rooms: Rooms,
) -> None:
    response = await rooms.send("/scrape/list", {"url": AREA, "limit": 5})
    found = response.json()
    assert found["new_to_queue"] == 5
    queue = found["queue_status"]
    assert queue["pending"] + queue["processing"] + queue["done"] == 5
    assert len(rooms.scene.details()) <= 1


async def test_without_a_worker_a_walk_is_promised_and_made_when_there_is_one(
    rooms: Rooms,
) -> None:
    response = await rooms.post("/scrape/list", url=AREA)
    assert response.status_code == 202, response.text
    later = response.json()
    run_id = later["run_id"]
    assert "mimawari serve" in later["reason"]
    assert later["queue_status"]["is_running"] is False
    assert later["job_id"] == run_id
    shown = await rooms.http.get(f"/api/scrape/list/{run_id}")
    assert (shown.status_code, shown.json()) == (202, later)
    await rooms.lists_only.work()
    assert (await rooms.get(f"/scrape/list/{run_id}"))["is_whole"] is True


async def test_a_walk_under_way_is_not_begun_a_second_time(rooms: Rooms) -> None:
    first, second = [await rooms.post("/scrape/list", url=AREA, limit=n) for n in (5, 7)]
    assert first.status_code == second.status_code == 202
    assert first.json()["run_id"] == second.json()["run_id"]
    assert len(await rooms.scene.jobs(tasks.LIST)) == 1


async def test_nobody_is_kept_waiting_for_a_list_that_is_held_for_longer(rooms: Rooms) -> None:
    until = rooms.scene.clock.now() + timedelta(minutes=5)
    await rooms.api.store.limiter.hold(tasks.LIST, until, "the site turned us away")
    response = await rooms.send("/scrape/list", {"url": AREA})
    assert response.status_code == 202
    later = response.json()
    assert later["next_at"] == "2026-01-05T12:05:00Z"
    assert later["reason"] == "the site turned us away"
    assert later["blocked_by"] == "limit rentals.list"


async def test_a_walk_that_stumbles_is_followed_by_its_id_to_its_end(rooms: Rooms) -> None:
    rooms.scene.order(do="status", code=500, times=1)
    response = await rooms.send("/scrape/list", {"url": LARGE_AREA, "limit": MOST_ROOMS})
    assert response.status_code == 202, response.text
    later = response.json()
    assert later["next_at"] == "2026-01-05T12:05:00Z"
    run_id = later["run_id"]
    await rooms.lists_only.pass_time(timedelta(minutes=5, seconds=5))
    half = await rooms.http.get(f"/api/scrape/list/{run_id}")
    assert half.status_code == 202
    assert half.json()["job_id"] != run_id
    await rooms.lists_only.pass_time(timedelta(minutes=1))
    assert (await rooms.get(f"/scrape/list/{run_id}"))["pages"] == 3


async def test_a_list_that_is_gone_is_not_found_on_any_path_and_asked_for_once(
    rooms: Rooms,
) -> None:
    gone = await rooms.send("/scrape/list", {"url": NO_LIST})
    assert "never asked again" in check_error(gone, 404, "not_found")
    (job,) = await rooms.scene.jobs(tasks.LIST)
    check_error(await rooms.http.get(f"/api/scrape/list/{job.id}"), 404, "not_found")
    check_error(await rooms.send("/scrape/list", {"url": NO_LIST}), 404, "not_found")
    check_error(await rooms.post("/searches", url=NO_LIST, every="6h"), 404, "not_found")
    assert len(rooms.scene.asked("/rent/search/")) == 1
    assert (await rooms.get("/searches"))["searches"] == []


async def test_a_list_that_is_not_understood_is_told_with_its_reason(rooms: Rooms) -> None:
    rooms.scene.order(do="changed_layout", times=1)
    response = await rooms.send("/scrape/list", {"url": AREA})
    assert "the list could not be read" in check_error(response, 422, "not_read")


async def test_a_walk_that_there_never_was_is_not_found(rooms: Rooms) -> None:
    await rooms.walk(limit=1)
    (detail,) = await rooms.scene.jobs()
    for unknown in (new_id(), detail.id):
        response = await rooms.http.get(f"/api/scrape/list/{unknown}")
        assert unknown in check_error(response, 404, "not_found")
    check_error(await rooms.http.get("/api/scrape/list/1"), 422, "bad_input")


async def test_a_walk_whose_list_was_removed_meanwhile_is_given_up(rooms: Rooms) -> None:
    run_id = (await rooms.post("/scrape/list", url=AREA)).json()["run_id"]
    async with rooms.api.store.edit() as tx:
        await lists.remove_list(tx, 1)
    await rooms.lists_only.work()
    response = await rooms.http.get(f"/api/scrape/list/{run_id}")
    assert "ask for the list again" in check_error(response, 404, "not_found")


@pytest.mark.parametrize("path", ["/scrape/list", "/searches"])
@pytest.mark.parametrize(
    "url",
    [
        "",
        "rent/search/",
        "https://example.com/rent/search/03/13/13104/",
        f"{ADDRESS}/rent/detail/{'0' * 44}/",
        f"{ADDRESS}/rent/search/../../etc/",
        f"{ADDRESS}@example.com/rent/search/03/",
        f"{ADDRESS}/rent/search/{'9' * 3000}/",
        "javascript:alert(1)",
        f"{AREA}\n",
    ],
)
async def test_an_address_that_is_no_list_is_refused(calm: Rooms, path: str, url: str) -> None:
    body = {"url": url, "every": "6h"} if path == "/searches" else {"url": url}
    message = check_error(await calm.post(path, **body), 422, "bad_input")
    assert "address" in message or "give one like" in message


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": 5},
        {"url": AREA, "limit": 0},
        {"url": AREA, "limit": MOST_ROOMS + 1},
        {"url": AREA, "limit": "5"},
        {"url": AREA, "limit": 1.5},
        {"url": AREA, "limit": None},
        {"url": AREA, "most": 5},
    ],
)
async def test_a_list_call_that_makes_no_sense_is_refused(calm: Rooms, body: Any) -> None:
    check_error(await calm.post("/scrape/list", **body), 422, "bad_input")


async def test_a_saved_search_is_walked_over_and_tells_how_much_it_saw(rooms: Rooms) -> None:
    saved = await rooms.post("/searches", url=AREA, limit=50, every="6h")
    assert saved.status_code == 201, saved.text
    assert saved.json() == {
        "id": 1,
        "url": AREA,
        "limit": 50,
        "every": "6h",
        "created_at": "2026-01-05T12:00:00Z",
        "last_run_at": None,
        "gone_at": None,
        "next_at": "2026-01-05T12:00:00Z",
        "last_run": None,
    }
    for walks in (1, 2):
        await rooms.scene.pass_time(hours=6 if walks > 1 else 1)
        (shown,) = (await rooms.get("/searches"))["searches"]
        run = shown["last_run"]
        assert (run["is_whole"], run["pages"], run["list_id"]) == (True, 1, 1)
        assert run["new_to_queue"] == (run["found"] if walks == 1 else 0)
        assert shown["last_run_at"] == run["ended_at"]
    assert shown["next_at"] == "2026-01-06T00:00:00Z"


async def test_a_search_that_is_saved_again_is_changed(rooms: Rooms) -> None:
    await rooms.post("/searches", url=AREA, every="6h")
    again = await rooms.post("/searches", url=AREA, limit=7, every="2d")
    assert again.status_code == 201
    (shown,) = (await rooms.get("/searches"))["searches"]
    assert shown == again.json()
    assert (shown["id"], shown["limit"], shown["every"]) == (1, 7, "2d")


async def test_a_removed_search_is_gone_and_what_it_found_stays(rooms: Rooms) -> None:
    await rooms.post("/searches", url=AREA, limit=5, every="1h")
    await rooms.scene.pass_time(minutes=1)
    assert (await rooms.http.delete("/api/searches/1")).status_code == 204
    assert await rooms.get("/searches") == {"searches": []}
    assert len((await rooms.get("/properties"))["properties"]) == 5
    check_error(await rooms.http.delete("/api/searches/1"), 404, "not_found")
    walks = len(rooms.scene.asked("/rent/search/"))
    await rooms.scene.pass_time(hours=3)
    assert len(rooms.scene.asked("/rent/search/")) == walks


async def test_a_list_that_was_only_walked_over_is_no_saved_search(rooms: Rooms) -> None:
    await rooms.walk(limit=1)
    assert await rooms.get("/searches") == {"searches": []}
    check_error(await rooms.http.delete("/api/searches/1"), 404, "not_found")
    check_error(await rooms.http.delete("/api/searches/x"), 422, "bad_input")


@pytest.mark.parametrize("every", ["1h", "720h", "1d", "30d"])
async def test_how_often_is_said_in_hours_or_days(calm: Rooms, every: str) -> None:
    saved = await calm.post("/searches", url=LARGE_AREA, every=every)
    assert saved.status_code == 201, saved.text


@pytest.mark.parametrize(
    "every", ["", "0h", "59m", "30s", "721h", "31d", "6", "6 h", "٦h", "1h\n", 6, None]
)
async def test_more_often_than_each_hour_is_not_allowed(calm: Rooms, every: object) -> None:
    response = await calm.post("/searches", url=AREA, every=every)
    assert "every" in check_error(response, 422, "bad_input")


@pytest.mark.parametrize("engine", ENGINES)
async def test_of_many_who_ask_for_a_new_list_at_once_each_is_told_of_the_same_one(
    databases: Databases, tmp_path: Path, engine: str
) -> None:
    async with open_rooms(databases.fresh(engine), tmp_path) as rooms:
        walks = await asyncio.gather(*(rooms.post("/scrape/list", url=AREA) for _ in range(6)))
        assert {walk.status_code for walk in walks} == {202}
        assert len({walk.json()["run_id"] for walk in walks}) == 1
        body = {"url": LARGE_AREA, "every": "1d"}
        saved = await asyncio.gather(*(rooms.post("/searches", **body) for _ in range(6)))
        assert {search.status_code for search in saved} == {201}
        assert len({search.json()["id"] for search in saved}) == 1
