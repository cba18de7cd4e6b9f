"""The daily round, the clean-up, the view of the queue, and the lines of the log."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from io import StringIO
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import structlog
from sqlalchemy import select, update

from mimawari import log
from mimawari.kernel.job import State
from mimawari.kernel.why import why
from mimawari.settings import DEFAULTS
from mimawari.store.sql.tables import jobs
from mimawari.watches.rentals import cleanup, rules, tasks
from mimawari.watches.rentals.tables import archive, properties, queue
from tests.rentals.scene import EVENING, HOUR, LARGE_AREA, Scene

FAR = timedelta(days=999)
MARKING = "marking as permanent_fail (no retry)"


async def hold(scene: Scene) -> None:
    """Let no detail be read."""
    await scene.store.limiter.hold(tasks.DETAIL, scene.clock.now() + FAR, "a test")


async def rows_of_view(scene: Scene) -> list[Any]:
    """List the queue as the view shows it."""
    async with scene.store.read() as reader:
        return list((await reader.execute(select(queue).order_by(queue.c.created_at))).all())


@pytest.mark.parametrize(
    ("now", "zone", "expected"),
    [
        ("2026-06-01T12:00:00+00:00", "Asia/Tokyo", "2026-06-01T17:00:00+00:00"),
        ("2026-06-01T16:59:59+00:00", "Asia/Tokyo", "2026-06-01T17:00:00+00:00"),
        ("2026-06-01T17:00:00+00:00", "Asia/Tokyo", "2026-06-02T17:00:00+00:00"),
        ("2026-06-01T12:00:00+00:00", "UTC", "2026-06-02T02:00:00+00:00"),
        # The night in which 02:00 does not exist there.
        ("2026-03-28T12:00:00+00:00", "Europe/Berlin", "2026-03-29T01:00:00+00:00"),
    ],
)
def test_the_daily_round_is_at_2_in_the_configured_zone(now: str, zone: str, expected: str) -> None:
    found = rules.next_daily(datetime.fromisoformat(now), ZoneInfo(zone))
    assert found.isoformat() == expected


async def test_the_daily_round_runs_at_2_and_again_the_next_day(scene: Scene) -> None:
    await scene.walk()
    await scene.pass_time(days=2)
    ended = [job.ended_at for job in await scene.jobs("rentals.daily")]
    assert [at.astimezone(ZoneInfo("Asia/Tokyo")).strftime("%d %H:%M") for at in ended if at] == [
        "02 02:00",
        "03 02:00",
    ]


async def choose(scene: Scene) -> tuple[list[str], int, int]:
    """Tell what a daily round would do now."""
    async with scene.store.read() as reader:
        chosen, existing, done = await tasks.choose(reader, scene.clock.now())
    return [key for key, _ in chosen], existing, done


async def clear_queue(scene: Scene) -> None:
    """Have the details in the queue end without being read."""
    await hold(scene)
    async with scene.store.database.write() as session:
        await session.execute(jobs.delete().where(jobs.c.kind == tasks.DETAIL))


async def test_the_daily_round_skips_what_is_pending_or_processing(scene: Scene) -> None:
    await hold(scene)
    await scene.walk(limit=20)
    assert await choose(scene) == ([], 20, 0)


async def test_the_daily_round_skips_what_was_done_within_12_hours(scene: Scene) -> None:
    await hold(scene)
    await scene.walk(limit=20)
    await clear_queue(scene)
    ids = sorted(await scene.rows())
    now = scene.clock.now()
    for key, hours in ((ids[0], 11.9), (ids[1], 12.0), (ids[2], 30)):
        await _read_at(scene, key, now - hours * HOUR)
    chosen, existing, done = await choose(scene)
    assert (len(chosen), existing, done) == (19, 0, 1)
    assert ids[0] not in chosen


async def _read_at(scene: Scene, key: str, at: datetime) -> None:
    async with scene.store.edit() as tx:
        mine = properties.c.property_id == key
        await tx.execute(update(properties).where(mine).values(detail_at=at))


async def test_the_daily_round_takes_at_most_100_and_the_oldest_first(scene: Scene) -> None:
    await hold(scene)
    await scene.walk(LARGE_AREA, limit=130)
    await clear_queue(scene)
    ids = sorted(await scene.rows())
    now = scene.clock.now()
    for place, key in enumerate(ids[:110]):
        await _read_at(scene, key, now - (20 + place) * HOUR)
    chosen, _, _ = await choose(scene)
    assert chosen == [*ids[110:], *ids[:110][::-1]][:100]


async def test_the_daily_round_never_takes_what_is_gone(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.walk(limit=20)
    await clear_queue(scene)
    [gone] = [key for key, row in (await scene.rows()).items() if row.gone_at]
    chosen, _, _ = await choose(scene)
    assert len(chosen) == 19
    assert gone not in chosen


async def test_the_view_shows_the_queue_in_the_states_of_the_spec(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.walk(limit=5)
    await scene.pass_time(minutes=15)
    rows = await rows_of_view(scene)
    assert sorted(row.status for row in rows) == [*["done"], *["pending"] * 3, "permanent_fail"]
    assert {row.property_id for row in rows} == set(await scene.rows())
    for row in rows:
        assert row.url.endswith(f"/rent/detail/{row.property_id}/")
        assert (row.completed_at is None) == (row.status == "pending")
        assert (row.next_at is None) == (row.status != "pending")


async def test_why_tells_what_a_detail_waits_for(scene: Scene) -> None:
    await scene.walk(limit=5)
    [waits, *_] = await scene.jobs(state=State.PENDING)
    answer = await why(scene.store, scene.clock, scene.rounds.watches, waits.id)
    assert answer is not None
    assert (answer.reason, answer.blocked_by) == ("hourly_limit", "limit rentals.detail")
    assert answer.next_at == EVENING + timedelta(minutes=12)


async def test_the_clean_up_archives_what_was_read_and_forgets_what_failed(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    await scene.walk(limit=5)
    await scene.pass_time(hours=3)
    soon, later = scene.clock.now() + timedelta(days=4), scene.clock.now() + timedelta(days=31)
    count = await cleanup.count_due(scene.store, DEFAULTS, soon)
    assert (count.archived, count.failed, count.permanent_fail) == (4, 0, 0)
    assert len(await rows_of_view(scene)) == 5
    assert await cleanup.clear(scene.store, DEFAULTS, soon) == count
    assert [row.status for row in await rows_of_view(scene)] == ["permanent_fail"]
    async with scene.store.read() as reader:
        kept = (await reader.execute(select(archive))).all()
    assert {row.property_id for row in kept} < set(await scene.rows())
    assert len(kept) == 4
    assert (await cleanup.clear(scene.store, DEFAULTS, later)).permanent_fail == 1
    assert await cleanup.clear(scene.store, DEFAULTS, later) == cleanup.Cleared(
        archived=0, failed=0, permanent_fail=0
    )


async def test_the_daily_round_cleans_up_too(scene: Scene) -> None:
    await scene.walk(limit=5)
    await scene.pass_time(days=5)
    [first, *_] = await scene.jobs("rentals.cleanup")
    assert first.state is State.DONE
    async with scene.store.read() as reader:
        assert len((await reader.execute(select(archive))).all()) >= 5


@contextmanager
def hearing() -> Iterator[list[str]]:
    """Hear what is logged meanwhile; it is there in the end."""
    stream, said = StringIO(), list[str]()
    log.configure("info", stream)
    try:
        yield said
    finally:
        structlog.reset_defaults()
    said += [json.loads(line)["message"] for line in stream.getvalue().splitlines()]


async def test_the_log_tells_every_step_in_the_words_of_the_spec(scene: Scene) -> None:
    scene.order(do="gone", path="/rent/detail/", times=1)
    with hearing() as said:
        await scene.walk(limit=5, minutes=20)
        scene.order(do="blocked", path="/rent/detail/", times=1)
        await scene.pass_time(minutes=20)
    [dead] = await scene.jobs(state=State.PERMANENT_FAIL)
    [done, *_] = await scene.jobs(state=State.DONE)
    now = round(EVENING.timestamp())
    url, done_id = done.args["url"], done.args["property_id"]
    for line in (
        "Added 5 new properties to detail_scrape_queue",
        f"QueueWorker: Processing id={done.id} url={url} attempt=1",
        f"QueueWorker: Acquiring DetailLimiter (caller=worker, id={done.id})",
        f"QueueWorker: Completed id={done.id} property_id={done_id}",
        f"QueueWorker: Permanent failure (404) for id={dead.id} - {MARKING}",
        "404 Not Found (property likely delisted): not retrying",
        f"[DetailLimiter] caller=worker now={now} next={now + 720} wait=720s reason=hourly_limit",
        "[WAF] Detected Yahoo WAF block page",
        "QueueWorker: Pausing for 5 minutes due to WAF detection",
    ):
        assert line in said
    assert any(
        line.startswith("QueueWorker: WAF/circuit breaker detected for id=")
        and line.endswith("- entering cooldown")
        for line in said
    )


async def test_the_log_tells_what_the_daily_round_did_and_that_parts_have_started(
    scene: Scene,
) -> None:
    await scene.walk(limit=5)
    with hearing() as said:
        await scene.pass_time(hours=13)
    daily = "Scheduler: Daily enqueue completed. Enqueued=0, SkippedExisting=0, SkippedDone=5,"
    assert f"{daily} Errors=0" in said
    with hearing() as started:
        scene.rounds.watches.tell_started("worker")
        scene.rounds.watches.tell_started("scheduler")
    assert started == [
        "QueueWorker: Started (poll_interval=0s, max_concurrency=1)",
        "Scheduler: Started with daily run at 02:00",
    ]


async def test_the_log_says_processing_once_a_detail_and_details_are_read_first_in_first_out(
    scene: Scene,
) -> None:
    with hearing() as said:
        await scene.walk(limit=27)
        await scene.pass_time(hours=7)
    jobs = await scene.jobs()
    assert len(jobs) == 27
    assert not {job.state for job in jobs} & {State.PENDING, State.PROCESSING}
    for verb in ("Processing id=", "Acquiring DetailLimiter (caller=worker, id="):
        lines = [line.partition(verb)[2] for line in said if f"QueueWorker: {verb}" in line]
        assert [line[:36] for line in lines] == [job.id for job in jobs]
    waits = [line for line in said if line.startswith("[DetailLimiter] caller=worker")]
    assert len(waits) >= 26


async def test_a_person_s_detail_goes_first_and_one_that_waits_keeps_its_place(
    scene: Scene,
) -> None:
    await scene.walk(limit=5, minutes=20)
    jobs = await scene.jobs()
    await scene.store.queue.hasten(str(jobs[4].dedupe_key), 10)
    await scene.pass_time(minutes=45)
    read = [one["path"] for one in scene.details()]
    order = [jobs[n].args["property_id"] for n in (0, 1, 4, 2, 3)]
    assert [path.split("/")[3] for path in read] == order


async def test_the_daily_round_counts_what_it_cannot_enqueue_and_enqueues_the_others(
    scene: Scene,
) -> None:
    await hold(scene)
    await scene.walk(limit=5)
    await clear_queue(scene)
    [broken, *others] = sorted(await scene.rows())
    async with scene.store.edit() as tx:
        mine = properties.c.property_id == broken
        elsewhere = f"http://elsewhere.test/rent/detail/{broken}/"
        await tx.execute(update(properties).where(mine).values(url=elsewhere))
    with hearing() as said:
        await scene.pass_time(hours=6)
    found = "Scheduler: Daily enqueue completed. Enqueued=4, SkippedExisting=0, SkippedDone=0,"
    assert f"{found} Errors=1" in said
    assert "Scheduler: Property not enqueued" in said
    assert {job.args["property_id"] for job in await scene.jobs()} == set(others)
