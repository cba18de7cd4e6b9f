"""Crawls that are asked for over the API: waited for, followed line by line, or promised."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from mimawari.kernel.job import AT_ONCE, NORMAL, State
from mimawari.kernel.signal import ENDS
from mimawari.watches.prices import actions, products
from mimawari.watches.prices.actions import Stage
from mimawari.watches.prices.products import DETAIL, LIST
from tests.app.ground import PATIENCE_SECONDS, check_error, check_guards
from tests.conftest import Databases
from tests.prices.api_ground import BUSY, LINES, QUIET, Shop, open_shop
from tests.prices.crawling import HOUR
from tests.servers import ENGINES

COUNTS = ("found", "added", "leftOut", "removed", "restored", "detailsEnqueued", "pagesRead",
          "pagesAsked", "capped")  # fmt: skip
NOBODY_WORKS = "no worker is running; start one with `mimawari serve`"


async def test_a_crawl_is_waited_for_and_tells_what_it_brought(shop: Shop) -> None:
    await shop.add()
    response = await shop.execute(json={"productId": 1})
    assert response.status_code == 200, response.text
    check_guards(response)
    [job] = await shop.crawls()
    details = await shop.api.store.queue.list(500, kind=DETAIL)
    [crawl] = response.json()["crawls"]
    assert crawl == {
        "productId": 1,
        "name": QUIET,
        "jobId": job.id,
        "state": "done",
        "found": 30,
        "added": 30,
        "leftOut": 0,
        "removed": 0,
        "restored": 0,
        "detailsEnqueued": 16,
        "pagesRead": 4,
        "pagesAsked": 4,
        "capped": False,
        "nextAt": None,
        "reason": None,
    }
    assert len(details) == 16
    assert {detail.state for detail in details} == {State.PENDING}


async def test_without_a_product_all_that_are_enabled_are_crawled_in_turn(shop: Shop) -> None:
    await shop.add(QUIET)
    await shop.add("nobody sells this", enabled=False)
    await shop.add(QUIET, min_price=1000, exclusions=["zzz"])
    response = await shop.execute()
    assert response.status_code == 200, response.text
    first, second = response.json()["crawls"]
    assert (first["productId"], second["productId"]) == (1, 3)
    assert (first["state"], second["state"]) == ("done", "done")
    assert first["found"] > second["found"] > 0
    for given in ({}, {"productId": None}):
        same = await shop.http.post("/api/crawl/execute?wait=false", json=given)
        assert [crawl["productId"] for crawl in same.json()["crawls"]] == [1, 3]


async def test_a_product_that_is_off_is_crawled_when_it_is_named(shop: Shop) -> None:
    await shop.add(enabled=False)
    none = await shop.execute()
    assert (none.status_code, none.json()) == (200, {"crawls": []})
    [crawl] = (await shop.execute(json={"productId": 1})).json()["crawls"]
    assert crawl["state"] == "done"


async def test_a_second_crawl_finds_nothing_new_and_reads_few_pages(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_shop(await databases.ready(), tmp_path, prices_pages=1) as shop:
        await shop.add(BUSY)
        [first] = (await shop.execute()).json()["crawls"]
        [second] = (await shop.execute()).json()["crawls"]
    assert first["pagesRead"] > second["pagesRead"] == 2
    assert (first["capped"], second["capped"]) == (False, True)
    assert first["jobId"] != second["jobId"]
    assert second["added"] < 5


async def test_the_lines_tell_the_pages_read_so_far_and_each_end(shop: Shop) -> None:
    for _ in range(2):
        await shop.add(QUIET)
    *steps, last = await shop.follow()
    assert last["crawls"] == [step["crawl"] for step in steps if step["step"] == "over"]
    assert [crawl["productId"] for crawl in last["crawls"]] == [1, 2]
    for crawl in last["crawls"]:
        mine = [step for step in steps if step.get("jobId") == crawl["jobId"]]
        told = [step for step in mine if step["step"] == "pages"]
        waits = [step["reason"] for step in mine if step["step"] == "waits"]
        free, busy = "waits for a free worker", "rounds is at work on it"
        assert set(waits) <= {free, busy, "minute_limit"}
        pages = [step["pagesRead"] for step in told]
        assert pages == sorted(set(pages))
        assert 0 < pages[0] <= pages[-1] <= crawl["pagesRead"]
        assert {step["productId"] for step in told} == {crawl["productId"]}


async def test_a_line_is_sent_while_the_crawl_goes_on_and_at_most_once_a_second(
    shop: Shop,
) -> None:
    await shop.add()
    [job] = await shop.claim(1)
    lines: asyncio.Queue[str] = asyncio.Queue()

    async def read(count: int) -> None:
        await shop.api.store.cache.set(products.pages_key(job.id), b"%d" % count, HOUR)
        # Somebody else's crawl has ended, which has everybody look.
        shop.api.store.signal.tell(ENDS)
        await shop.get("/products")

    async def follow() -> None:
        async with shop.http.stream("POST", "/api/crawl/execute", headers=LINES) as response:
            async for line in response.aiter_lines():
                lines.put_nowait(line)

    await read(1)
    following = asyncio.create_task(follow())
    first = await asyncio.wait_for(lines.get(), PATIENCE_SECONDS)
    await read(2)
    await read(3)
    await shop.until_waiting()
    assert lines.empty()
    await shop.clock.advance(timedelta(seconds=1))
    second = await asyncio.wait_for(lines.get(), PATIENCE_SECONDS)
    following.cancel()
    told = {"step": "pages", "productId": 1, "jobId": job.id}
    assert json.loads(first) == {**told, "pagesRead": 1}
    assert json.loads(second) == {**told, "pagesRead": 3}


async def test_what_a_crawl_waits_for_is_a_line_once_for_each_reason(shop: Shop) -> None:
    await shop.add()
    await shop.say_alive()
    [job] = await shop.crawls()
    until = shop.clock.now() + HOUR / 10
    await shop.api.store.limiter.hold(LIST, until, "the site asked for a pause")
    chosen = await actions.ask_for_crawls(shop.api.system, 1)
    steps = actions.follow(shop.api.system, chosen, shop.clock.now() + HOUR)
    found = await asyncio.wait_for(anext(steps), PATIENCE_SECONDS)
    await steps.aclose()
    assert (found.stage, found.asked.job_id, found.next_at) == (Stage.WAITING, job.id, until)
    assert found.reason == "the site asked for a pause"


async def test_who_takes_any_form_gets_json(shop: Shop) -> None:
    response = await shop.execute(headers={"Accept": "*/*"})
    assert response.headers["content-type"] == "application/json"
    lines = await shop.execute(headers={"Accept": "text/html, Application/X-NDJSON;q=0.5"})
    assert lines.text == '{"crawls":[]}\n'


async def test_without_a_worker_it_is_said_at_once_that_there_is_none(shop: Shop) -> None:
    for word in ("a", "b"):
        await shop.add(word)
    response = await shop.http.post("/api/crawl/execute")
    assert response.status_code == 202, response.text
    for crawl in response.json()["crawls"]:
        assert (crawl["state"], crawl["reason"]) == ("waiting", NOBODY_WORKS)
        assert [crawl[name] for name in COUNTS] == [None] * len(COUNTS)
    lines = await shop.http.post("/api/crawl/execute", headers=LINES)
    assert lines.status_code == 200
    assert lines.json() == response.json()


async def test_many_that_stand_still_are_told_at_once_each(shop: Shop) -> None:
    for number in range(25):
        await shop.add(f"word {number}")
    response = await shop.http.post("/api/crawl/execute")
    crawls = response.json()["crawls"]
    assert [crawl["productId"] for crawl in crawls] == list(range(1, 26))
    assert {crawl["reason"] for crawl in crawls} == {NOBODY_WORKS}


async def test_who_does_not_wait_gets_the_jobs_at_once(shop: Shop) -> None:
    await shop.add()
    await shop.say_alive()
    response = await shop.http.post("/api/crawl/execute?wait=false", json={"productId": 1})
    assert response.status_code == 202
    [crawl] = response.json()["crawls"]
    [job] = await shop.crawls()
    assert (crawl["jobId"], crawl["state"]) == (job.id, "waiting")
    assert crawl["reason"] == "waits for a free worker"
    await shop.lists_only.pass_time(timedelta(seconds=7))
    [now] = (await shop.http.post("/api/crawl/execute?wait=false")).json()["crawls"]
    assert (now["jobId"], now["state"], now["pagesRead"]) == (job.id, "running", 2)
    assert (now["found"], now["pagesAsked"], now["nextAt"]) == (None, None, None)
    assert "at work" in now["reason"]


async def test_what_is_asked_for_goes_before_others(shop: Shop) -> None:
    await shop.add(enabled=False)
    await shop.api.store.queue.put([products.list_job(1)])
    assert [job.priority for job in await shop.crawls()] == [NORMAL]
    await shop.http.post("/api/crawl/execute?wait=false", json={"productId": 1})
    assert [job.priority for job in await shop.crawls()] == [AT_ONCE]


async def test_nobody_is_kept_waiting_for_what_is_held_for_longer(shop: Shop) -> None:
    await shop.add()
    held = shop.clock.now() + timedelta(minutes=11)
    await shop.api.store.limiter.hold(LIST, held, "the site turned us away")
    response = await shop.execute()
    assert response.status_code == 202
    [crawl] = response.json()["crawls"]
    assert (crawl["state"], crawl["nextAt"]) == ("waiting", "2026-06-01T13:11:00Z")
    assert crawl["reason"] == "the site turned us away"
    assert shop.clock.now() < held - timedelta(minutes=10)


async def test_what_is_held_for_less_is_waited_for(shop: Shop) -> None:
    await shop.add()
    held = shop.clock.now() + timedelta(seconds=20)
    await shop.api.store.limiter.hold(LIST, held, "the site asked for it")
    response = await shop.execute()
    assert response.status_code == 200, response.text
    assert shop.clock.now() >= held


async def test_after_ten_minutes_it_is_told_how_far_crawls_have_come(shop: Shop) -> None:
    for word in ("one", "another"):
        await shop.add(word)
    await shop.say_alive()
    # The first one is under way, as far as anybody knows.
    [job] = await shop.claim(1)
    await shop.api.store.cache.set(products.pages_key(job.id), b"2", timedelta(hours=1))
    asking = asyncio.create_task(shop.http.post("/api/crawl/execute"))
    await shop.until_waiting()
    await shop.clock.advance(timedelta(minutes=9, seconds=59))
    await shop.get("/products")
    await shop.until_waiting()
    assert not asking.done()
    await shop.clock.advance(timedelta(seconds=1))
    response = await asking
    assert response.status_code == 202
    first, second = response.json()["crawls"]
    assert (first["state"], first["pagesRead"]) == ("running", 2)
    assert (second["state"], second["reason"]) == ("waiting", "waits for a free worker")


async def test_a_crawl_that_failed_is_told_and_no_error_of_the_others(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_shop(await databases.ready(), tmp_path, prices_first_pages=1) as shop:
        await shop.add(QUIET)
        await shop.add(QUIET)
        shop.order(do="changed_layout", path="/v2/entities:search", times=2)
        lines = await shop.follow()
    bad, good = lines[-1]["crawls"]
    assert (bad["state"], good["state"]) == ("failed", "done")
    assert bad["reason"].startswith("the list could not be read: ")
    assert bad["found"] is None
    assert [line["crawl"] for line in lines[:-1] if line["step"] == "over"] == [bad, good]


async def test_a_crawl_that_will_never_be_tried_again_is_told_too(shop: Shop) -> None:
    await shop.add()
    actions = (await shop.http.post("/api/crawl/execute?wait=false")).json()
    await shop.end_crawls(State.PERMANENT_FAIL)
    assert actions["crawls"][0]["state"] == "waiting"
    [crawl] = (await shop.follow())[-1]["crawls"]
    assert crawl["jobId"] != actions["crawls"][0]["jobId"]
    assert crawl["state"] == "done"


async def test_pages_that_could_not_be_read_are_told(shop: Shop) -> None:
    await shop.add()
    shop.order(do="status", code=500, path="/v2/entities:search", times=1)
    [crawl] = (await shop.execute()).json()["crawls"]
    assert crawl["state"] == "done"
    assert crawl["pagesRead"] < crawl["pagesAsked"]
    assert "500" in crawl["reason"]


async def test_a_product_that_is_removed_meanwhile_is_told(shop: Shop) -> None:
    await shop.add()
    await shop.say_alive()

    async def remove() -> Any:
        asking = asyncio.create_task(shop.http.post("/api/crawl/execute"))
        await shop.until_waiting()
        await shop.http.delete("/api/products/1")
        return await asking

    response = await shop.waits.answer(remove(), shop.lists_only)
    assert response.status_code == 200, response.text
    [crawl] = response.json()["crawls"]
    assert (crawl["state"], crawl["reason"]) == (
        "failed",
        actions.REMOVED,
    )


@pytest.mark.parametrize(
    ("query", "body"),
    [
        ("", {"productId": 0}),
        ("", {"productId": "1"}),
        ("", {"productId": 1.5}),
        ("", {"product_id": 1}),
        ("", {"productId": 2**31}),
        ("", []),
        ("?wait=maybe", {}),
        ("?wait=1", {}),
        ("?waits=true", {}),
    ],
)
async def test_a_call_that_makes_no_sense_is_refused(calm: Shop, query: str, body: Any) -> None:
    response = await calm.http.post(f"/api/crawl/execute{query}", json=body)
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize("engine", ENGINES)
async def test_of_many_who_ask_at_once_each_is_told_of_the_same_crawl(
    databases: Databases, tmp_path: Path, engine: str
) -> None:
    async with open_shop(databases.fresh(engine), tmp_path) as shop:
        await shop.add()
        asking = [shop.http.post("/api/crawl/execute") for _ in range(6)]
        answers = await asyncio.gather(*asking)
        assert {answer.status_code for answer in answers} == {202}
        assert len({answer.json()["crawls"][0]["jobId"] for answer in answers}) == 1
        [crawl] = (await shop.execute()).json()["crawls"]
        assert crawl["state"] == "done"
