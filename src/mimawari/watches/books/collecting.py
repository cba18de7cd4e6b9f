"""Keeps what a page brought: books, cursor, usage and the run, all in one commit."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import select, update

from mimawari.kernel.job import Job
from mimawari.kernel.ports import Reader, Tx
from mimawari.settings import Settings
from mimawari.sites.google_books import Volume, VolumesPage
from mimawari.watches.books import jobs, log_lines, quota, rules
from mimawari.watches.books.cursors import find_cursor, save_cursor
from mimawari.watches.books.models import BookJob, Cursor, Reading, Returned, Run, StopReason
from mimawari.watches.books.quota import Call
from mimawari.watches.books.tables import books, job_books, runs
from mimawari.watches.books.tables import jobs as jobs_table

SEEN_AGAIN = (
    *("volume_id", "isbn13", "title", "subtitle", "authors", "publisher", "published"),
    *("language", "categories", "description", "page_count", "thumbnail", "info_link"),
    "last_seen_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Where a run stands before its next page."""

    job: BookJob
    cursor: Cursor | None
    run: Run

    @property
    def reading(self) -> Reading:
        """How far the run has come."""
        start_index = self.cursor.start_index if self.cursor else 0
        return Reading(start_index=start_index, collected=self.run.collected, page=self.run.pages)

    @property
    def is_same_as(self) -> tuple[Any, ...]:
        """What must not have changed for a page to be of use."""
        job, start_index = self.job, self.reading.start_index
        return (job.enabled, job.query_set_hash, job.print_type, job.lang_restrict, start_index)


async def find_step(reader: Reader | Tx, job: Job, now: datetime) -> Step | None:
    """Tell where a run stands; None if its job is not there any more."""
    found = await jobs.find_job(reader, str(job.args.get("job")))
    return None if found is None else await _make_step(reader, job, found, now)


async def hold_step(tx: Tx, job: Job, now: datetime) -> Step | None:
    """Tell where a run stands, and let nobody else change its job before this is committed."""
    found = await jobs.hold_job(tx, str(job.args.get("job")))
    return None if found is None else await _make_step(tx, job, found, now)


async def _make_step(reader: Reader | Tx, job: Job, found: BookJob, now: datetime) -> Step:
    digits = found.query_set_hash
    cursor = await find_cursor(reader, found.name, digits)
    run_id = job.args.get("run") or job.id
    run = await find_run(reader, run_id) or Run(
        id=run_id,
        job_id=found.id,
        query_set_hash=digits,
        is_dry=bool(job.args.get("dry")),
        started_at=now,
        next_index=cursor.start_index if cursor else 0,
    )
    # A run goes on with other queries if the job has them by now, and tells of those.
    return Step(job=found, cursor=cursor, run=replace(run, query_set_hash=digits))


def make_run(row: Any) -> Run:
    """Make a run of its row."""
    given = {name: getattr(row, name) for name in Run.__dataclass_fields__}
    reason = StopReason(row.stop_reason) if row.stop_reason else None
    return Run(**{**given, "stop_reason": reason})


async def find_run(reader: Reader | Tx, run_id: str) -> Run | None:
    """Find a run by its id, which is that of its first job."""
    row = (await reader.execute(select(runs).where(runs.c.id == run_id))).first()
    return None if row is None else make_run(row)


async def save_run(tx: Tx, run: Run) -> None:
    """Keep how a run stands."""
    row = asdict(run)
    await tx.save(runs, [row], change=[name for name in row if name != "id"])


def key_of(volume: Volume) -> str:
    """Name what a book is kept under."""
    return volume.isbn13 or volume.id


def returned_by(page: VolumesPage) -> Returned:
    """Count what a page brought; volumes that cannot be used take their place all the same."""
    return Returned(
        volumes=len(page.volumes) + len(page.refused),
        with_isbn=sum(volume.isbn13 is not None for volume in page.volumes),
        total_items=page.total_items,
    )


async def keep_page(tx: Tx, step: Step, page: VolumesPage, calls_left: int, now: datetime) -> Run:
    """Keep a page's books and where to go on, and tell how the run stands after it."""
    returned = returned_by(page)
    new_books = await _keep_books(tx, step, page, now)
    reason = rules.find_stop(step.reading, returned, step.job.max_per_run, calls_left)
    reading = rules.go_on(step.reading, returned)
    cursor = Cursor(start_index=reading.start_index, is_exhausted=reason is StopReason.EXHAUSTED)
    await save_cursor(tx, step.job.name, step.job.query_set_hash, cursor, now)
    run = replace(
        step.run,
        pages=reading.page,
        volumes=step.run.volumes + returned.volumes,
        refused=step.run.refused + len(page.refused),
        collected=reading.collected,
        new_books=step.run.new_books + new_books,
        next_index=reading.start_index,
        total_items=returned.total_items,
        stop_reason=reason,
        words=log_lines.stop_words(reason, step.job, reading, returned) if reason else None,
        ended_at=now if reason else None,
    )
    await save_run(tx, run)
    return run


async def _keep_books(tx: Tx, step: Step, page: VolumesPage, now: datetime) -> int:
    """Keep books, and by whom they were found; say how many nobody had found before."""
    found = {key_of(volume): volume for volume in reversed(page.volumes)}
    places = {key_of(volume): place for place, volume in reversed([*enumerate(page.volumes)])}
    # In one order, so that two jobs that find the same books cannot wait for each other.
    rows = [_row_of(key, found[key], step.job.name, now) for key in sorted(found)]
    known = await _list_known(tx, select(books.c.book_key), books.c.book_key.in_(found))
    await tx.save(books, rows, change=SEEN_AGAIN)
    mine = (job_books.c.job_id == step.job.id) & job_books.c.book_key.in_(found)
    found_before = await _list_known(tx, select(job_books.c.book_key), mine)
    start_index = step.reading.start_index
    marks = [
        {
            "job_id": step.job.id,
            "book_key": key,
            "run_id": step.run.id,
            "found_at": now,
            "place": start_index + places[key],
        }
        for key in sorted(found.keys() - found_before)
    ]
    await tx.save(job_books, marks)
    return len(found.keys() - known)


async def _list_known(tx: Tx, query: Any, condition: Any) -> set[str]:
    return set((await tx.execute(query.where(condition))).scalars())


def _row_of(key: str, volume: Volume, job_name: str, now: datetime) -> Mapping[str, Any]:
    row = asdict(volume)
    return {
        **{name: value for name, value in row.items() if name != "id"},
        "book_key": key,
        "volume_id": volume.id,
        "authors": json.dumps(volume.authors, ensure_ascii=False),
        "categories": json.dumps(volume.categories, ensure_ascii=False),
        "first_job": job_name,
        "first_seen_at": now,
        "last_seen_at": now,
    }


async def stop(tx: Tx, step: Step, reason: StopReason, why: str | None, now: datetime) -> Run:
    """End a run without a page; the cursor stays where it is, and is not exhausted by it."""
    cursor = Cursor(start_index=step.reading.start_index)
    await save_cursor(tx, step.job.name, step.job.query_set_hash, cursor, now)
    words = log_lines.stop_words(reason, step.job, step.reading)
    words = f"{words} ({why})" if why else words
    run = replace(step.run, ended_at=now, stop_reason=reason, words=words)
    await save_run(tx, run)
    return run


async def end_run(tx: Tx, step: Step, run: Run, next_at: datetime, settings: Settings) -> None:
    """Set when a job whose run has ended is due again; after a dry run it is as it was."""
    cursor = await find_cursor(tx, step.job.name, step.job.query_set_hash)
    is_exhausted = cursor is not None and cursor.is_exhausted
    if not run.is_dry:
        ran = update(jobs_table).where(jobs_table.c.id == step.job.id)
        await tx.execute(ran.values(last_run_at=run.started_at))
        tx.put(jobs.mail_job(run.id))
    if is_exhausted or not run.is_dry:
        jobs.place(tx, step.job, cursor, next_at, settings)


async def count_call(tx: Tx, call: Call, settings: Settings, now: datetime) -> int:
    """Count a call that is over, and tell how many are left today."""
    await quota.settle(tx, call)
    return (await quota.find_usage(tx, settings, now)).left
