"""The jobs: what is searched for, kept and put on the schedule."""

import json
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update

from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import NewJob
from mimawari.kernel.naming import Naming
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target
from mimawari.settings import Settings
from mimawari.text import format_duration
from mimawari.watches.books.cursors import find_cursor, list_cursors, reset_cursors
from mimawari.watches.books.models import BookJob, Cursor, Search
from mimawari.watches.books.tables import jobs

PAGE, MAIL = "books.page", "books.mail"
NAMED = select(jobs.c.name.label("id"), jobs.c.name)
NAMING = (Naming(member="books:([^:]+)", parse_id=str, names=NAMED),)

Change = Callable[[BookJob], Search]
"""Tells what a job is to be."""


def member_of(name: str) -> str:
    """Name a job's place on the schedule and in the queue, where it has one at a time."""
    return f"books:{name}"


def page_job(name: str, *, run_id: str | None = None, is_dry: bool = False, **given: Any) -> NewJob:
    """Ask for a run of a job, or for the next page of one; a job has one run at a time."""
    args: dict[str, Any] = {"job": name}
    args |= {"run": run_id} if run_id else {}
    args |= {"dry": True} if is_dry else {}
    member = member_of(name)
    return NewJob(kind=PAGE, args=args, dedupe_key=member, target=member, **given)


def mail_key(run_id: str) -> str:
    """Name the place in the queue of the digest after a run."""
    return f"{MAIL}:{run_id}"


def mail_job(run_id: str) -> NewJob:
    """Ask for a digest of what is new after a run."""
    return NewJob(kind=MAIL, dedupe_key=mail_key(run_id), target=MAIL)


def place(tx: Tx, job: BookJob, cursor: Cursor | None, at: datetime, settings: Settings) -> None:
    """Set when a job is next due: at a time, or if it is exhausted when it looks again, if ever."""
    member, again_after = member_of(job.name), settings.books_recheck_after
    if not job.enabled:
        tx.remove(member)
    elif cursor is None or not cursor.is_exhausted:
        reason = f"every {format_duration(job.every_for)}"
        tx.place(_entry(job, at, job.every_for, reason))
    elif again_after is None:
        tx.remove(member)
    else:
        reason = f"exhausted; looks again every {format_duration(again_after)}"
        tx.place(_entry(job, at, again_after, reason))


def _entry(job: BookJob, at: datetime, every: timedelta, reason: str) -> Entry:
    args = {"job": job.name}
    member = member_of(job.name)
    return Entry(member=member, kind=PAGE, args=args, next_at=at, every=every, reason=reason)


def due_at(job: BookJob, cursor: Cursor | None, now: datetime, settings: Settings) -> datetime:
    """Tell when a job is due by its last run; one whose queries were never searched for, now."""
    if job.last_run_at is None or cursor is None:
        return now
    again_after = settings.books_recheck_after if cursor.is_exhausted else None
    return max(now, job.last_run_at + (again_after or job.every_for))


async def list_targets(reader: Reader, settings: Settings) -> Sequence[Target]:
    """List what is gone round to; the schedule is rebuilt from it."""
    stand = {(one.job_name, one.query_set_hash): one for one in await list_cursors(reader)}
    targets = []
    for job in await list_jobs(reader):
        cursor = stand.get((job.name, job.query_set_hash))
        is_exhausted = cursor is not None and cursor.is_exhausted
        every = settings.books_recheck_after if is_exhausted else job.every_for
        if job.enabled and every is not None:
            targets.append(
                Target(
                    member=member_of(job.name),
                    kind=PAGE,
                    args={"job": job.name},
                    every=every,
                    last_run_at=job.last_run_at if cursor else None,
                )
            )
    return targets


def _values(search: Search) -> dict[str, Any]:
    return {
        **{name: getattr(search, name) for name in _SEARCHED},
        "queries": json.dumps(search.queries, ensure_ascii=False),
        "recipients": json.dumps(search.recipients),
        "every_seconds": round(search.every_for.total_seconds()),
    }


def make_job(row: Any) -> BookJob:
    """Make a job of its row."""
    given = {name: getattr(row, name) for name in row._fields if name in _PLAIN}
    return BookJob(
        **given,
        queries=tuple(json.loads(row.queries)),
        recipients=tuple(json.loads(row.recipients)),
        every_for=timedelta(seconds=row.every_seconds),
    )


_WRITTEN = {"queries", "recipients", "every_for"}
_PLAIN = BookJob.__dataclass_fields__.keys() - _WRITTEN
_SEARCHED = Search.__dataclass_fields__.keys() - _WRITTEN


async def find_job(reader: Reader | Tx, name: str) -> BookJob | None:
    """Find a job by its name."""
    row = (await reader.execute(select(jobs).where(jobs.c.name == name))).first()
    return None if row is None else make_job(row)


async def find_known(reader: Reader | Tx, name: str) -> BookJob:
    """Find a job by its name, or say how to find one."""
    job = await find_job(reader, name)
    if job is None:
        raise NotFound(f"no job goes by the name {name!r}; `mimawari books job ls` lists them")
    return job


async def hold_job(tx: Tx, name: str) -> BookJob | None:
    """Find a job, and let nobody else change it before this is committed."""
    query = select(jobs).where(jobs.c.name == name).with_for_update()
    row = (await tx.execute(query)).first()
    return None if row is None else make_job(row)


async def list_jobs(reader: Reader | Tx) -> list[BookJob]:
    """List all jobs by name."""
    return [make_job(row) for row in await reader.execute(select(jobs).order_by(jobs.c.name))]


async def add_job(tx: Tx, search: Search, settings: Settings, now: datetime) -> BookJob:
    """Keep a new job, due at once if it is enabled."""
    if await find_job(tx, search.name) is not None:
        raise BadInput(
            f"a job named {search.name!r} is there already; change it, or choose another name",
            code="name_taken",
        )
    stamps = {"created_at": now, "updated_at": now}
    await tx.execute(insert(jobs).values(**_values(search), **stamps))
    job = await find_known(tx, search.name)
    await _place(tx, job, settings, now)
    return job


async def change_job(
    tx: Tx, name: str, change: Change, settings: Settings, now: datetime
) -> BookJob:
    """Change a job; with other queries it begins anew, and is due at once."""
    known = await hold_job(tx, name) or await find_known(tx, name)
    search = change(known)
    if search.name != name:
        raise BadInput("a job keeps its name; add another one")
    values = _values(search)
    await tx.execute(update(jobs).where(jobs.c.id == known.id).values(**values, updated_at=now))
    job = await find_known(tx, name)
    await _place(tx, job, settings, now)
    return job


async def _place(tx: Tx, job: BookJob, settings: Settings, now: datetime) -> None:
    cursor = await find_cursor(tx, job.name, job.query_set_hash)
    place(tx, job, cursor, due_at(job, cursor, now, settings), settings)


async def reset_job(tx: Tx, name: str, settings: Settings, now: datetime) -> int:
    """Let a job begin anew, due at once if it is enabled; say how many cursors it had."""
    job = await hold_job(tx, name) or await find_known(tx, name)
    count = await reset_cursors(tx, name)
    place(tx, job, None, now, settings)
    return count


async def remove_job(tx: Tx, name: str) -> None:
    """Forget a job with its runs and cursors; its books, and what was mailed of them, stay."""
    await find_known(tx, name)
    await tx.execute(delete(jobs).where(jobs.c.name == name))
    await reset_cursors(tx, name)
    tx.remove(member_of(name))
