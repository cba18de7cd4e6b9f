"""What the description wants done, line by line; each test names its line."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect
from starlette.responses import JSONResponse, Response
from structlog.testing import capture_logs

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.why import why
from mimawari.store.sql import SqlStore
from mimawari.store.sql.engine import Session
from mimawari.watches.books import cursors, jobs, tables
from mimawari.watches.books.hashing import hash_queries
from mimawari.watches.books.models import Cursor, StopReason
from tests.books.scene import DAY_OVER, HOUR, NOON, Catalogue, open_scene, refuse

DOCS = Path(__file__).parents[2] / "docs"


async def test_the_table_collect_cursor_is_made(store: SqlStore) -> None:
    """`collect_cursor` テーブルが作成される."""

    def look(session: Session) -> tuple[Any, Any]:
        catalogue = inspect(session.connection)
        found = catalogue.get_columns("collect_cursor")
        return found, catalogue.get_pk_constraint("collect_cursor")["constrained_columns"]

    found, keys = await store.database.look(look)
    columns = {one["name"]: one for one in found}
    names = ["job_name", "query_set_hash", "start_index", "is_exhausted", "last_updated_at"]
    assert list(columns) == names
    assert keys == ["job_name", "query_set_hash"]
    assert not any(one["nullable"] for one in columns.values())
    kinds = {name: one["type"].python_type for name, one in columns.items()}
    assert kinds == dict(zip(names, (str, str, int, int, str), strict=True))
    defaults = {name: str(one["default"] or "").strip("'") for name, one in columns.items()}
    assert (defaults["start_index"], defaults["is_exhausted"]) == ("0", "0")
    assert "CURRENT_TIMESTAMP" in defaults["last_updated_at"].upper().replace("()", "")


async def test_a_row_of_collect_cursor_that_says_nothing_else_has_its_defaults(
    store: SqlStore,
) -> None:
    async with store.database.write() as session:
        await session.execute(
            tables.cursors.insert().values(job_name="plain", query_set_hash="0" * 64)
        )
    async with store.read() as reader:
        (found,) = await cursors.list_cursors(reader, "plain")
    assert (found.start_index, found.is_exhausted) == (0, False)
    assert abs(found.last_updated_at - datetime.now(UTC)) < 100 * HOUR


async def test_several_pages_are_read_and_the_start_index_goes_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    """ページングで複数ページを取得できる (startIndex が進む)."""
    async with open_scene(store, clock, Catalogue(150)) as scene:
        await scene.add_job(max_per_run=80)
        with capture_logs() as told:
            await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40), (40, 40)]
        assert (await scene.cursor()).start_index == 80
        assert len(await scene.titles()) == 80
    assert [line["event"] for line in told if "google-books" in line["event"]] == [
        "[google-books][new] Page 1: startIndex=0, returned=40, totalItems=150",
        "[google-books][new] Page 2: startIndex=40, returned=40, totalItems=150",
        "[google-books][new] Stopped: max_per_run reached (80/80), next startIndex=80",
    ]


async def test_with_at_most_7_a_run_the_site_sees_max_results_7(
    store: SqlStore, clock: VirtualClock
) -> None:
    """`maxPerRun` < 40 のとき overfetch しない."""
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.add_job(max_per_run=7)
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 7)]


async def test_the_last_page_of_a_run_asks_for_the_rest_only(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.add_job(max_per_run=50)
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40), (40, 10)]


async def test_the_cursor_is_kept_and_the_next_run_goes_on(
    store: SqlStore, clock: VirtualClock
) -> None:
    """カーソルが永続化され、次回実行で継続する."""
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.add_job(max_per_run=20, every_for=6 * HOUR)
        await scene.pass_time(minutes=1)
    # Another process, with nothing in its memory.
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.pass_time(hours=6)
        assert scene.asked() == [(20, 20)]
        assert (await scene.cursor()).start_index == 40


async def test_inserting_and_updating_both_change_last_updated_at(
    store: SqlStore, clock: VirtualClock
) -> None:
    """UPSERT で INSERT/UPDATE 両方で last_updated_at が更新される."""
    later = NOON + 5 * HOUR
    for at, index in ((NOON, 40), (later, 80)):
        async with store.edit() as tx:
            cursor = Cursor(start_index=index, is_exhausted=index == 80)
            await cursors.save_cursor(tx, "new", "a" * 64, cursor, at)
        async with store.read() as reader:
            found = await cursors.find_cursor(reader, "new", "a" * 64)
        assert found is not None
        assert (found.last_updated_at, found.start_index) == (at, index)
        assert found.is_exhausted is (index == 80)


async def test_other_queries_have_another_hash_and_do_not_take_over_the_cursor(
    store: SqlStore, clock: VirtualClock
) -> None:
    """クエリ変更時に query_set_hash が変わり旧カーソルを引き継がない."""
    async with open_scene(store, clock, Catalogue(100)) as scene:
        await scene.add_job(max_per_run=20)
        await scene.pass_time(minutes=1)
        await scene.change_job(lambda job: replace(job, queries=("subject:history",)))
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 20), (0, 20)]
        async with store.read() as reader:
            found = await cursors.list_cursors(reader)
        assert {one.query_set_hash for one in found} == {
            hash_queries(["subject:fiction"]),
            hash_queries(["subject:history"]),
        }
        await scene.change_job(lambda job: replace(job, queries=("  subject:fiction ",)))
        await scene.pass_time(days=1)
        assert scene.asked()[-1] == (20, 20)


async def test_an_exhausted_job_is_warned_of_and_its_state_kept(
    store: SqlStore, clock: VirtualClock
) -> None:
    """枯渇時に warn ログ + 停止状態が記録される."""
    async with open_scene(store, clock, Catalogue(120)) as scene:
        job = await scene.add_job(max_per_run=1000)
        with capture_logs() as told:
            await scene.pass_time(minutes=1)
        cursor, run = await scene.cursor(), await scene.last_run()
        assert (cursor.start_index, cursor.is_exhausted) == (120, True)
        assert run.stop_reason is StopReason.EXHAUSTED
        assert run.ended_at is not None
        digits = job.query_set_hash[:16]
        words = f"Exhausted: startIndex=120 >= totalItems=120 (query_set_hash={digits}...)"
        assert run.words == words
        warned = [line["event"] for line in told if line["log_level"] == "warning"]
        assert warned == [f"[google-books][new] {words}"]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (refuse(500), StopReason.ERROR),
        (refuse(503), StopReason.ERROR),
        (JSONResponse({"kind": "books#volumes"}), StopReason.ERROR),
        (Response("<html>", 200), StopReason.ERROR),
        (refuse(429, DAY_OVER), StopReason.QUOTA),
    ],
    ids=["500", "503", "neither items nor a total", "a page", "the day's quota"],
)
async def test_an_error_or_the_quota_never_makes_a_job_exhausted(
    store: SqlStore, clock: VirtualClock, reply: Response, reason: StopReason
) -> None:
    """API エラー/クォータ停止時は is_exhausted=false のまま (誤枯渇防止)."""
    catalogue = Catalogue(100)
    async with open_scene(store, clock, catalogue) as scene:
        await scene.add_job(max_per_run=40, every_for=30 * HOUR)
        await scene.pass_time(minutes=1)
        catalogue.replies = [reply] * 6
        await scene.pass_time(hours=40)
        cursor, run = await scene.cursor(), await scene.last_run()
        assert (cursor.start_index, cursor.is_exhausted) == (40, False)
        assert run.stop_reason is reason
        assert f"startIndex={40}" in str(run.words)
        catalogue.replies = []
        await scene.pass_time(hours=40)
        cursor = await scene.cursor()
        assert cursor.start_index > 40


async def test_a_total_of_0_is_exhausted_from_the_start(
    store: SqlStore, clock: VirtualClock
) -> None:
    """totalItems=0 の場合、start_index=0 + is_exhausted=true で正しく処理される."""
    async with open_scene(store, clock, Catalogue(0)) as scene:
        await scene.add_job()
        await scene.pass_time(minutes=1)
        cursor = await scene.cursor()
        assert (cursor.start_index, cursor.is_exhausted) == (0, True)


async def test_an_exhausted_job_is_skipped_by_the_next_run(
    store: SqlStore, clock: VirtualClock
) -> None:
    """停止状態のジョブは次回 run でスキップされる."""
    async with open_scene(store, clock, Catalogue(10)) as scene:
        await scene.add_job(every_for=HOUR)
        await scene.pass_time(days=3)
        assert len(scene.asked()) == 1
        assert await why(store, clock, scene.rounds.watches, "books:new") is None
        with capture_logs() as told:
            await store.queue.put([jobs.page_job("new")])
            await scene.pass_time(minutes=1)
        assert len(scene.asked()) == 1
        digits = hash_queries(["subject:fiction"])[:16]
        line = f"[new] Skipped: exhausted (query_set_hash={digits})"
        assert line in [one["event"] for one in told]


async def test_a_reset_job_begins_anew_at_once(store: SqlStore, clock: VirtualClock) -> None:
    """`dre job cursor reset <job-name> --yes` でリセットできる."""
    async with open_scene(store, clock, Catalogue(10)) as scene:
        await scene.add_job()
        await scene.pass_time(hours=1)
        assert await scene.reset() == 1
        async with store.read() as reader:
            assert await cursors.list_cursors(reader) == []
        await scene.pass_time(minutes=1)
        assert scene.asked() == [(0, 40), (0, 40)]
        assert await scene.reset("new") == 1
        assert await scene.reset("new") == 0


def test_the_operators_guide_tells_of_cursor_exhaustion_and_reset() -> None:
    """`docs/ops/collect.md` にカーソル/枯渇/リセットが記載されている."""
    guide = (DOCS / "ops" / "collect.md").read_text(encoding="utf-8")
    for word in ("collect_cursor", "枯渇", "dre job cursor reset", "--yes", "query_set_hash"):
        assert word in guide
