"""Every way a run can go on and stop."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import SecretStr
from starlette.responses import Response

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import State
from mimawari.kernel.why import why
from mimawari.store.sql import SqlStore
from mimawari.watches.books import collecting, cursors, jobs, mailing, queries
from mimawari.watches.books.hashing import hash_queries
from mimawari.watches.books.models import Cursor, Run, StopReason
from tests.books.scene import DAY_OVER, HOUR, NOON, Catalogue, Scene, open_scene, refuse, volume

BUSY = "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute per user'"


async def test_volumes_without_an_isbn_are_kept_and_do_not_count(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue()
    catalogue.volumes = [volume(number, isbn=number % 2 == 0) for number in range(60)]
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=10)
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 10), (10, 5), (15, 2), (17, 1), (18, 1)]
        assert len(await scene.titles()) == 19
        assert (await scene.last_run()).collected == 10


async def test_a_volume_that_cannot_be_used_takes_its_place_all_the_same(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(60)
    catalogue.volumes[3] = {"id": "v3", "volumeInfo": {}}
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=41)
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40), (40, 2)]
        run = await scene.last_run()
        assert (run.volumes, run.refused, run.collected) == (42, 1, 41)


async def test_a_volume_that_cannot_be_used_and_is_the_last_one_is_the_end(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(41)
    catalogue.volumes[40] = {"id": "v40", "volumeInfo": {}}
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=100)
        await scene.pass_time(minutes=1)
        cursor = await scene.cursor()
        assert (cursor.start_index, cursor.is_exhausted) == (41, True)


@pytest.mark.parametrize(
    ("totals", "asked", "is_exhausted"),
    [
        ({0: 1_000_000, 40: 1_000_000, 80: 1_000_000}, [(0, 40), (40, 40), (80, 40)], True),
        ({0: None, 40: None, 80: None}, [(0, 40), (40, 40), (80, 40)], False),
        ({0: 90, 40: 80}, [(0, 40), (40, 40)], True),
        ({0: 41, 40: 200, 80: 200}, [(0, 40), (40, 40), (80, 40)], True),
    ],
    ids=["a million", "absent", "shrinking", "growing"],
)
async def test_totals_that_drift_are_taken_as_each_page_tells_them(
    store: SqlStore,
    clock: VirtualClock,
    totals: dict[int, int | None],
    asked: list[tuple[int, int]],
    *,
    is_exhausted: bool,
) -> None:
    catalogue = Catalogue(80)
    catalogue.total = lambda start: totals.get(start, totals[max(totals)])
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=1000, every_for=30 * HOUR)
        await scene.pass_time(minutes=1)
        assert list(dict.fromkeys(scene.asked())) == asked
        cursor = await scene.cursor()
        assert (cursor.start_index, cursor.is_exhausted) == (80, is_exhausted)


async def test_a_bad_hour_and_a_burst_are_waited_for_and_the_run_goes_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(100)
    catalogue.replies = [refuse(503), refuse(503), refuse(429, BUSY)]
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=40)
        await scene.pass_time(hours=1)
        assert scene.asked() == [(0, 40)] * 4
        assert (await scene.last_run()).stop_reason is StopReason.MAX_PER_RUN
        assert (await scene.usage()).calls == 4


async def test_the_day_s_calls_end_a_run_and_the_next_day_goes_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(500), books_calls=2) as scene:
        await scene.add_job(max_per_run=400, every_for=HOUR)
        await scene.pass_time(hours=11)
        assert scene.asked() == [(0, 40), (40, 40)]
        run = await scene.last_run()
        assert run.words == "Stopped: quota limit reached, next startIndex=80"
        entry = await store.schedule.find("books:new")
        assert entry is not None
        # Midnight in Tokyo.
        assert entry.next_at == NOON + 12 * HOUR
        await scene.pass_time(hours=2)
        assert scene.asked()[2:] == [(80, 40), (120, 40)]
        assert len(await scene.runs()) == 2


async def test_no_calls_at_all_are_made_where_none_are_allowed(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(50), books_calls=0) as scene:
        await scene.add_job()
        await scene.pass_time(hours=1)
        assert scene.asked() == []
        assert (await scene.last_run()).stop_reason is StopReason.QUOTA
        assert (await scene.cursor()).start_index == 0


async def test_the_site_s_own_quota_holds_all_jobs_until_its_day_is_over(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(100)
    catalogue.replies = [refuse(429, DAY_OVER)]
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job("one")
        await scene.add_job("two")
        await scene.pass_time(hours=3)
        assert len(scene.asked()) == 1
        (ended,) = await scene.runs()
        assert ended.words == (
            "Stopped: quota limit reached, next startIndex=0 (by the site's own count)"
        )
        answers = [
            await why(store, clock, scene.rounds.watches, f"books:{name}")
            for name in ("one", "two")
        ]
        # Midnight on the Pacific coast is 16 hours behind Tokyo's in summer.
        midnight = datetime(2026, 6, 1, 7, tzinfo=UTC)
        assert [one.next_at for one in answers if one] == [midnight, midnight]
        assert any("used up" in one.reason for one in answers if one)
        await scene.pass_time(hours=2)
        assert len(scene.asked()) > 1


async def test_who_has_no_key_is_told_so_and_does_not_wait_for_another_day_with_one(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(100)
    catalogue.replies = [refuse(429, DAY_OVER)]
    async with open_scene(store, clock, catalogue, books_key=SecretStr("")) as scene:
        await scene.add_job()
        await scene.pass_time(minutes=1)
        run = await scene.last_run()
        assert run.stop_reason is StopReason.QUOTA
        assert "no API key is set" in str(run.words)
        assert "MIMAWARI_BOOKS_KEY" in str(run.words)
    async with open_scene(store, clock, catalogue) as scene:
        await store.queue.put([jobs.page_job("new")])
        await scene.rounds.work()
        assert scene.asked() == [(0, 40)]


async def test_an_exhausted_job_looks_again_where_that_is_set(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(10)
    after = timedelta(days=7)
    async with open_scene(store, clock, catalogue, books_recheck_after=after) as scene:
        await scene.add_job(every_for=HOUR)
        await scene.pass_time(days=6)
        assert scene.asked() == [(0, 40)]
        answer = await why(store, clock, scene.rounds.watches, "books:new")
        assert answer is not None
        assert answer.reason == "exhausted; looks again every 7d"
        catalogue.volumes += [volume(number) for number in range(10, 15)]
        await scene.pass_time(days=2)
        assert scene.asked()[1:] == [(10, 40)]
        cursor = await scene.cursor()
        assert (cursor.start_index, cursor.is_exhausted) == (15, True)


@pytest.mark.parametrize(
    "replies", [[refuse(429, DAY_OVER)], [refuse(500)] * 6], ids=["the day's quota", "errors"]
)
async def test_a_job_that_could_not_look_again_does_so_as_soon_as_it_can(
    store: SqlStore, clock: VirtualClock, replies: list[Response]
) -> None:
    catalogue = Catalogue(10)
    after = timedelta(days=7)
    async with open_scene(store, clock, catalogue, books_recheck_after=after) as scene:
        await scene.add_job(every_for=HOUR)
        await scene.pass_time(days=6)
        catalogue.volumes.append(volume(10))
        catalogue.replies = [*replies]
        await scene.pass_time(days=2)
        assert set(scene.asked()[1:]) == {(10, 40)}
        assert len(scene.asked()) == 1 + len(replies) + 1
        cursor = await scene.cursor()
        assert (cursor.start_index, cursor.is_exhausted) == (11, True)


async def test_a_job_that_is_changed_while_its_page_is_fetched_keeps_nothing_of_it(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(100)
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=40)

        async def meanwhile() -> None:
            digits, cursor = hash_queries(["subject:fiction"]), Cursor(start_index=60)
            async with store.edit() as tx:
                await cursors.save_cursor(tx, "new", digits, cursor, NOON)

        catalogue.meanwhile = meanwhile
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40), (60, 40)]
        assert (await scene.cursor()).start_index == 100
        assert await scene.titles() == sorted(f"Book {number}" for number in range(60, 100))


async def test_a_run_of_which_less_is_wanted_by_now_ends_without_another_page(
    store: SqlStore, clock: VirtualClock
) -> None:
    catalogue = Catalogue(200)
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=120)

        async def meanwhile() -> None:
            await scene.change_job(lambda job: replace(job, max_per_run=20))

        catalogue.meanwhile = meanwhile
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40)]
        run = await scene.last_run()
        assert (run.stop_reason, run.collected) == (StopReason.MAX_PER_RUN, 40)
        assert (await scene.cursor()).start_index == 40


async def test_a_run_that_has_all_that_is_wanted_by_now_asks_for_no_page(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(200)) as scene:
        job = await scene.add_job(max_per_run=20)
        begun = Run(
            id="a-run", job_id=job.id, query_set_hash=job.query_set_hash, is_dry=False,
            started_at=NOON, pages=1, collected=40, next_index=40,
        )  # fmt: skip
        async with store.edit() as tx:
            await collecting.save_run(tx, begun)
        await store.queue.put([jobs.page_job("new", run_id="a-run")])
        await scene.rounds.work()
        assert scene.asked() == []
        run = await scene.last_run()
        assert (run.id, run.stop_reason) == ("a-run", StopReason.MAX_PER_RUN)


async def test_a_job_removed_or_disabled_is_not_searched_for(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.add_job("off", enabled=False)
        await scene.add_job("gone")
        async with store.edit() as tx:
            await jobs.remove_job(tx, "gone")
        await store.queue.put([jobs.page_job("off"), jobs.page_job("gone")])
        await scene.pass_time(hours=30)
        assert scene.asked() == []


async def disable(scene: Scene) -> None:
    """Have a job run no more."""
    await scene.change_job(lambda job: replace(job, enabled=False))


async def remove(scene: Scene) -> None:
    """Forget a job."""
    async with scene.store.edit() as tx:
        await jobs.remove_job(tx, "new")


@pytest.mark.parametrize("end", [disable, remove])
async def test_a_run_whose_job_is_disabled_or_removed_meanwhile_keeps_no_digest_waiting(
    store: SqlStore, clock: VirtualClock, end: Callable[[Scene], Awaitable[None]]
) -> None:
    catalogue = Catalogue(100)
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=80)
        asked: list[str] = []

        async def meanwhile() -> None:
            asked.append("a page")
            if len(asked) == 2:
                await end(scene)
            else:
                catalogue.meanwhile = meanwhile

        catalogue.meanwhile = meanwhile
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40), (40, 40)]
        async with store.read() as reader:
            assert not await mailing.is_under_way(reader, clock.now())
        mailed = await store.queue.list(10, kind=jobs.MAIL)
        assert [one.state for one in mailed] == [State.DONE]


async def test_a_job_tells_of_the_last_run_with_the_queries_that_it_has(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(10)) as scene:
        await scene.add_job()
        await scene.pass_time(minutes=1)
        await scene.change_job(lambda job: replace(job, queries=("other",), max_per_run=5))
        await scene.pass_time(minutes=1)
        await scene.change_job(lambda job: replace(job, queries=("subject:fiction",)))
        async with store.read() as reader:
            found = await queries.find_state(reader, "new")
        assert found.is_exhausted
        assert found.last_run is not None
        assert found.last_run.stop_reason is StopReason.EXHAUSTED


async def test_a_dry_run_keeps_the_cursor_but_not_that_it_ran(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.add_job(max_per_run=10, enabled=False)
        async with store.edit() as tx:
            job = await jobs.change_job(
                tx, "new", lambda known: replace(known, enabled=True), scene.settings, clock.now()
            )
        await store.queue.put([jobs.page_job("new", is_dry=True)])
        await scene.rounds.work()
        assert (await scene.cursor()).start_index == 10
        async with store.read() as reader:
            after = await jobs.find_known(reader, "new")
        assert after.last_run_at is job.last_run_at is None
        entry = await store.schedule.find("books:new")
        assert entry is not None
        assert entry.next_at <= clock.now()
