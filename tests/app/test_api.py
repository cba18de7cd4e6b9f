"""The routes: jobs in pages, one job, bringing back, the schedule, and why something waits."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mimawari.ids import new_id
from mimawari.kernel.job import NAME, NewJob, State
from mimawari.kernel.values import Entry
from tests.app.ground import Api, check_error, end, open_api, put
from tests.conftest import Databases

MANY = 100_000
HOSTILE = "a'b\"c\\d%e_f;--{g}<h>&i#j/k?l=日本 🦊 \u202e"
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
async def fresh(databases: Databases, tmp_path: Path) -> AsyncIterator[Api]:
    """An API on a database that nothing was put into."""
    async with open_api(await databases.ready(), tmp_path) as running:
        yield running


async def get(api: Api, path: str, **params: Any) -> Any:
    """Ask and insist on an answer."""
    response = await api.http.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


async def all_pages(api: Api, **params: Any) -> list[str]:
    """Follow the pages of jobs to their end and return all ids."""
    ids: list[str] = []
    while True:
        page = await get(api, "/api/jobs", **params)
        assert len(page["jobs"]) <= params["limit"]
        ids += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            return ids
        params["before"] = page["next"]


async def test_jobs_come_newest_first_a_page_at_a_time_each_once(fresh: Api) -> None:
    ids = [await end(fresh.store, State.DONE), *await put(fresh.store, 11)]
    ids += [await end(fresh.store, State.FAILED)]
    for limit in (1, 4, 13, 500):
        assert await all_pages(fresh, limit=limit) == ids[::-1]


async def test_no_jobs_are_an_empty_page(fresh: Api) -> None:
    assert await get(fresh, "/api/jobs") == {"jobs": [], "next": None}


async def test_jobs_are_filtered_by_state_and_kind(fresh: Api) -> None:
    ended = {state: await end(fresh.store, state) for state in State if state not in LIVE}
    (read,) = await put(fresh.store)
    (note,) = await put(fresh.store, kind="example.note")
    for state, job_id in ended.items():
        assert await all_pages(fresh, limit=2, state=state.value) == [job_id]
    assert await all_pages(fresh, limit=2, state="pending") == [note, read]
    assert await all_pages(fresh, limit=2, state="processing") == []
    assert await all_pages(fresh, limit=2, kind="example.note") == [note]
    assert await all_pages(fresh, limit=2, kind="example.read", state="pending") == [read]


LIVE = (State.PENDING, State.PROCESSING)


@pytest.mark.parametrize(
    "params",
    [
        {"state": "lost"},
        {"state": ""},
        {"kind": "Robert'); DROP TABLE jobs"},
        {"kind": "a" * 65},
        {"before": "x"},
        {"before": "\x00" * 36},
    ],
)
async def test_a_filter_that_makes_no_sense_is_not_allowed(
    api: Api, params: dict[str, str]
) -> None:
    check_error(await api.http.get("/api/jobs", params=params), 422, "bad_input")


async def test_one_job_is_shown_whole(fresh: Api) -> None:
    (job_id,) = await put(
        fresh.store, args={"text": HOSTILE}, dedupe_key="k", target="t", priority=7, run_at=LATER
    )
    job = await get(fresh, f"/api/jobs/{job_id}")
    assert job.pop("enqueued_at").endswith("Z")
    assert job == {
        "id": job_id,
        "kind": "example.read",
        "state": "pending",
        "args": {"text": HOSTILE},
        "dedupe_key": "k",
        "target": "t",
        "priority": 7,
        "attempts": 0,
        "next_at": "2100-01-01T00:00:00Z",
        "reason": None,
        "blocked_by": None,
        "worker": None,
        "ended_at": None,
        "page_bytes": None,
    }


async def test_a_job_that_is_not_there_is_not_found(api: Api) -> None:
    unknown = new_id()
    assert unknown in check_error(await api.http.get(f"/api/jobs/{unknown}"), 404, "not_found")
    check_error(await api.http.post(f"/api/jobs/{unknown}/retry"), 404, "not_found")
    check_error(await api.http.get("/api/jobs/nonsense"), 422, "bad_input")


async def test_a_dead_letter_is_brought_back_once(fresh: Api) -> None:
    job_id = await end(fresh.store, State.FAILED)
    dead = await get(fresh, f"/api/jobs/{job_id}")
    assert (dead["state"], dead["attempts"], dead["page_bytes"]) == ("failed", 1, 3)
    response = await fresh.http.post(f"/api/jobs/{job_id}/retry")
    assert response.status_code == 200
    back = response.json()
    assert (back["id"], back["state"], back["attempts"]) == (job_id, "pending", 0)
    again = await fresh.http.post(f"/api/jobs/{job_id}/retry")
    assert "pending" in check_error(again, 409, "conflict")


@pytest.mark.parametrize("state", [State.DONE, State.PERMANENT_FAIL])
async def test_a_job_that_did_not_fail_is_not_brought_back(api: Api, state: State) -> None:
    job_id = await end(api.store, state)
    response = await api.http.post(f"/api/jobs/{job_id}/retry")
    assert state.value in check_error(response, 409, "conflict")
    assert (await get(api, f"/api/jobs/{job_id}"))["state"] == state.value


async def test_the_status_counts_jobs_and_events(fresh: Api) -> None:
    for state in (State.DONE, State.DONE, State.FAILED, State.PERMANENT_FAIL):
        await end(fresh.store, state)
    await put(fresh.store, 3)
    async with fresh.store.edit() as tx:
        tx.emit("a", "example.grown", {}, destination="log:")
    counts = await get(fresh, "/api/status")
    assert sum(counts.pop("events").values()) == 1
    assert counts == {"pending": 3, "processing": 0, "done": 2, "failed": 1, "permanent_fail": 1}


async def test_the_schedule_comes_by_member_a_page_at_a_time(fresh: Api) -> None:
    members = sorted([*(f"example:{n:02}" for n in range(5)), f"example:{HOSTILE}"])
    every = timedelta(minutes=90)
    entries = [
        Entry(member=member, kind="example.read", args={}, next_at=LATER, every=every, reason="x")
        for member in members
    ]
    await fresh.store.schedule.put(entries)
    found: list[str] = []
    after = ""
    while after is not None:
        page = await get(fresh, "/api/schedule", limit=2, after=after)
        found += [entry["member"] for entry in page["entries"]]
        after = page["next"]
    assert found == members
    (first,) = (await get(fresh, "/api/schedule", limit=1))["entries"]
    assert first == {
        "member": members[0],
        "kind": "example.read",
        "next_at": "2100-01-01T00:00:00Z",
        "every_seconds": 5400.0,
        "reason": "x",
    }


async def test_why_explains_a_target_and_a_job_by_id_and_by_key(fresh: Api) -> None:
    page = {"name": "garden", "url": "http://127.0.0.1:1/", "every_seconds": 60}
    assert (await fresh.http.post("/api/example/pages", json=page)).status_code == 201
    target = await get(fresh, "/api/why", name="example:garden")
    assert (target["state"], target["reason"], target["job_id"]) == ("scheduled", "first run", None)
    new = NewJob(kind="example.read", dedupe_key="a key", run_at=LATER)
    await fresh.store.queue.put([new])
    for name in (new.id, "a key"):
        job = await get(fresh, "/api/why", name=name)
        assert (job["subject"], job["state"], job["job_id"]) == (name, "pending", new.id)
        assert (job["next_at"], job["reason"]) == ("2100-01-01T00:00:00Z", "its time has not come")


async def test_why_explains_a_target_with_the_longest_name(fresh: Api) -> None:
    name = "t" * NAME
    entry = Entry(
        member=name, kind="example.read", args={}, next_at=LATER, every=timedelta(hours=1)
    )
    await fresh.store.schedule.put([entry])
    assert (await get(fresh, "/api/why", name=name))["state"] == "scheduled"


async def test_why_explains_a_job_that_no_watch_runs_and_one_that_ended(api: Api) -> None:
    (orphan,) = await put(api.store, kind="nobody.runs")
    assert (await get(api, "/api/why", name=orphan))["blocked_by"] == "kind"
    done = await end(api.store, State.DONE)
    answer = await get(api, "/api/why", name=done)
    assert (answer["state"], answer["next_at"]) == ("done", None)


async def test_why_knows_nothing_of_an_unknown_name(api: Api) -> None:
    response = await api.http.get("/api/why", params={"name": HOSTILE})
    assert "日本" in check_error(response, 404, "not_found")
    for name in ("", "a\x00b", "a\nb", "n" * 191):
        response = await api.http.get("/api/why", params={"name": name})
        check_error(response, 422, "bad_input")
    check_error(await api.http.get("/api/why"), 422, "bad_input")


async def test_a_page_added_twice_is_refused_the_second_time(api: Api) -> None:
    page = {"name": "twice", "url": "http://127.0.0.1:1/"}
    first = await api.http.post("/api/example/pages", json=page)
    assert first.status_code == 201
    assert first.json()["every_seconds"] == 60
    second = await api.http.post("/api/example/pages", json=page)
    assert "'twice'" in check_error(second, 409, "conflict")
    assert first.json() in (await get(api, "/api/example/pages"))["pages"]


@pytest.mark.parametrize("every", [59.5, "60", True, None, 9, 604801, 1e300])
async def test_a_page_is_read_in_whole_seconds_only(api: Api, every: object) -> None:
    page = {"name": "odd", "url": "http://127.0.0.1:1/", "every_seconds": every}
    message = check_error(await api.http.post("/api/example/pages", json=page), 422, "bad_input")
    assert message.startswith("body.every_seconds: ")


async def test_sixty_is_sixty_however_json_writes_it(api: Api) -> None:
    page = {"name": "even", "url": "http://127.0.0.1:1/", "every_seconds": 60.0}
    response = await api.http.post("/api/example/pages", json=page)
    assert (response.status_code, response.json()["every_seconds"]) == (201, 60)


async def test_a_queue_of_a_hundred_thousand_is_listed_a_bounded_page_at_a_time(
    fresh: Api,
) -> None:
    ids: list[str] = []
    for _ in range(MANY // 10_000):
        ids += await put(fresh.store, 10_000)
    newest = ids[::-1]
    first = await get(fresh, "/api/jobs", state="pending", limit=500)
    assert [job["id"] for job in first["jobs"]] == newest[:500]
    assert first["next"] == newest[499]
    middle = await get(fresh, "/api/jobs", before=newest[MANY // 2], limit=3)
    assert [job["id"] for job in middle["jobs"]] == newest[MANY // 2 + 1 : MANY // 2 + 4]
    last = await get(fresh, "/api/jobs", before=newest[-2], kind="example.read")
    assert [job["id"] for job in last["jobs"]] == newest[-1:]
    assert last["next"] is None
    assert (await get(fresh, "/api/status"))["pending"] == MANY
