"""The pages of the queue: counts, lists, why jobs wait, dead letters and their return."""

from datetime import timedelta

from markupsafe import escape

from mimawari.kernel.job import End, NewJob, State, Want
from mimawari.kernel.values import BreakerPolicy
from mimawari.web.queue import A_PAGE
from tests.web.ground import Browser
from tests.web.scene import HOSTILE, end_jobs

ENGLISH = {"Accept-Language": "en"}


async def test_an_empty_queue_says_so(visitor: Browser) -> None:
    assert "該当するジョブはありません" in await visitor.see("/queue")
    page = await visitor.see("/queue", **ENGLISH)
    assert "There are no such jobs" in page
    assert "Every site answers" in page


async def test_jobs_are_counted_and_listed_by_state_and_kind(visitor: Browser) -> None:
    system = visitor.api.system
    failed, done = await end_jobs(system, State.FAILED, State.DONE)
    (waiting,) = await system.store.queue.put([NewJob(kind="hot.crawl")])
    for query, seen in {
        "": {failed, done, waiting},
        "?state=failed": {failed},
        "?kind=hot.crawl": {waiting},
        "?state=done&kind=hot.crawl": set(),
        "?state=nonsense&kind=nonsense": {failed, done, waiting},
    }.items():
        page = await visitor.see(f"/queue{query}")
        assert {one for one in (failed, done, waiting) if one in page} == seen, query
        rows = (await visitor.get(f"/queue?format=csv&{query[1:]}")).text.splitlines()
        assert len(rows) == len(seen) + 1


async def test_a_list_goes_on_below_where_it_ended(visitor: Browser) -> None:
    queue = visitor.api.store.queue
    ids = await queue.put([NewJob(kind="hot.crawl") for _ in range(A_PAGE + 1)])
    page = await visitor.see("/queue")
    assert (ids[0] in page, ids[1] in page, f"before={ids[1]}" in page) == (False, True, True)
    following = await visitor.see(f"/queue?before={ids[1]}")
    assert (f"/queue/{ids[0]}" in following, f"/queue/{ids[1]}" in following) == (True, False)


async def test_a_job_that_is_done_has_no_reason_and_one_at_work_says_who_is(
    visitor: Browser,
) -> None:
    queue = visitor.api.store.queue
    await queue.put([NewJob(kind="hot.crawl")])
    want = Want(kind="hot.crawl", most=1, lease_for=timedelta(minutes=5))
    (job,) = (await queue.turn((), [want], "worker-7")).jobs
    assert "worker-7 is at work on it" in await visitor.see("/queue", **ENGLISH)
    await queue.turn([End(id=job.id, token=job.token, state=State.DONE)], (), "worker-7")
    page = await visitor.see("/queue", **ENGLISH)
    assert ("worker-7" in page, "<td>–</td>" in page) == (False, True)


async def test_what_stands_in_the_way_of_a_job_is_said(visitor: Browser) -> None:
    system = visitor.api.system
    await system.store.queue.put([NewJob(kind="rentals.detail")])
    policy = BreakerPolicy(failures=1)
    await system.store.breaker.failed("yahoo_realestate", policy, f"403 {HOSTILE}")
    await system.store.limiter.acquire(system.watches.limit("rentals.list"), "test")
    page = await visitor.see("/queue", **ENGLISH)
    assert "(breaker yahoo_realestate)" in page
    assert page.count(escape(f"403 {HOSTILE}")) == 2
    assert "cooling down" in page
    assert "as many as may be in a minute" in page


async def test_a_job_is_shown_whole_and_a_hostile_one_as_text(visitor: Browser) -> None:
    system = visitor.api.system
    (job_id,) = await end_jobs(system, State.FAILED, page=HOSTILE.encode())
    page = await visitor.see(f"/queue/{job_id}", **ENGLISH)
    assert "1 / 5" in page
    assert "<script>alert" not in page
    assert escape(f"ended {HOSTILE}") in page
    args = {"url": "https://x", "password": "letmein"}
    (other,) = await system.store.queue.put(
        [NewJob(kind="hot.crawl", args=args, run_at=system.clock.now() + timedelta(hours=1))]
    )
    page = await visitor.see(f"/queue/{other}", **ENGLISH)
    assert "its time has not come" in page
    assert "letmein" not in page


async def test_a_kept_page_is_sent_to_be_saved_and_never_shown(visitor: Browser) -> None:
    kept = b"<script>alert(1)</script>\xff"
    (job_id,) = await end_jobs(visitor.api.system, State.FAILED, page=kept)
    sent = await visitor.get(f"/queue/{job_id}/page")
    assert sent.content == kept
    assert sent.headers["content-type"] == "text/plain; charset=utf-8"
    assert sent.headers["content-disposition"] == f'attachment; filename="{job_id}.txt"'
    assert sent.headers["x-content-type-options"] == "nosniff"
    (bare,) = await end_jobs(visitor.api.system, State.FAILED)
    assert (await visitor.get(f"/queue/{bare}/page")).status_code == 404


async def test_a_dead_letter_comes_back_and_no_other_does(visitor: Browser) -> None:
    failed, done = await end_jobs(visitor.api.system, State.FAILED, State.DONE)
    without = await visitor.http.post(f"/queue/{failed}/retry", data={})
    assert without.status_code == 422
    back = await visitor.send(f"/queue/{failed}/retry")
    assert (back.status_code, back.headers["location"]) == (303, f"/queue/{failed}")
    found = await visitor.api.store.queue.find(failed)
    assert found is not None
    assert (found.state, found.attempts) == (State.PENDING, 0)
    assert "/retry" not in await visitor.see(f"/queue/{done}")
    assert (await visitor.send(f"/queue/{done}/retry")).status_code == 422


async def test_a_job_nobody_knows_is_not_found(visitor: Browser) -> None:
    for path in ("/queue/x", "/queue/%3Cscript%3E", "/queue/x/page"):
        assert (await visitor.get(path)).status_code == 404
    assert (await visitor.send("/queue/x/retry")).status_code == 404
