"""What people look at: books, runs and how jobs stand."""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select

from mimawari.kernel.ports import Reader
from mimawari.watches.books import jobs
from mimawari.watches.books.collecting import make_run
from mimawari.watches.books.cursors import list_cursors
from mimawari.watches.books.models import BookJob, KeptCursor, Run
from mimawari.watches.books.tables import books, job_books, runs
from mimawari.watches.books.tables import jobs as jobs_table


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBook:
    """A book as it is kept."""

    book_key: str
    volume_id: str
    isbn13: str | None
    title: str
    subtitle: str | None
    authors: tuple[str, ...]
    publisher: str | None
    published: str | None
    language: str | None
    categories: tuple[str, ...]
    description: str | None
    page_count: int | None
    thumbnail: str | None
    info_link: str | None
    first_job: str
    first_seen_at: datetime
    last_seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobState:
    """A job, where its queries stand, and the last run with these queries."""

    job: BookJob
    cursor: KeptCursor | None
    last_run: Run | None
    books: int

    @property
    def is_exhausted(self) -> bool:
        """Whether there is nothing more to find until it is reset, or looks again."""
        return self.cursor is not None and self.cursor.is_exhausted


def _make_book(row: Any) -> KeptBook:
    given = {name: getattr(row, name) for name in KeptBook.__dataclass_fields__}
    lists = {name: tuple(json.loads(given[name])) for name in ("authors", "categories")}
    return KeptBook(**{**given, **lists})


async def list_books(
    reader: Reader, most: int, job_name: str | None = None, offset: int = 0
) -> list[KeptBook]:
    """List books, those found last first: all, or those that a job has found."""
    query = select(books).order_by(books.c.first_seen_at.desc(), books.c.book_key)
    if job_name is not None:
        job = await jobs.find_known(reader, job_name)
        query = (
            select(books)
            .join(job_books, job_books.c.book_key == books.c.book_key)
            .where(job_books.c.job_id == job.id)
            .order_by(job_books.c.found_at.desc(), job_books.c.place)
        )
    return [_make_book(row) for row in await reader.execute(query.limit(most).offset(offset))]


async def count_books(reader: Reader, job_name: str | None = None) -> int:
    """Count all books, or those that a job has found."""
    query = select(func.count()).select_from(books)
    if job_name is not None:
        job = await jobs.find_known(reader, job_name)
        query = select(func.count()).where(job_books.c.job_id == job.id)
    return int((await reader.execute(query)).scalar_one())


async def list_runs(reader: Reader, job_id: int, most: int, offset: int = 0) -> list[Run]:
    """List the runs of a job, the newest first."""
    query = select(runs).where(runs.c.job_id == job_id)
    query = query.order_by(runs.c.started_at.desc(), runs.c.id.desc()).limit(most).offset(offset)
    return [make_run(row) for row in await reader.execute(query)]


async def count_runs(reader: Reader, job_id: int) -> int:
    """Count the runs of a job."""
    query = select(func.count()).where(runs.c.job_id == job_id)
    return int((await reader.execute(query)).scalar_one())


async def list_last_runs(reader: Reader, most: int) -> list[tuple[str, Run]]:
    """List the runs of all jobs with the jobs' names, the newest first."""
    query = select(runs, jobs_table.c.name).join(jobs_table, jobs_table.c.id == runs.c.job_id)
    query = query.order_by(runs.c.started_at.desc(), runs.c.id.desc()).limit(most)
    return [(row.name, make_run(row)) for row in await reader.execute(query)]


async def list_states(reader: Reader) -> list[JobState]:
    """List all jobs by name, with how each stands."""
    cursors = {(one.job_name, one.query_set_hash): one for one in await list_cursors(reader)}
    newest = func.row_number().over(
        partition_by=(runs.c.job_id, runs.c.query_set_hash),
        order_by=(runs.c.started_at.desc(), runs.c.id.desc()),
    )
    numbered = select(runs, newest.label("number")).subquery()
    rows = await reader.execute(select(numbered).where(numbered.c.number == 1))
    last = {(row.job_id, row.query_set_hash): make_run(row) for row in rows}
    counted = select(job_books.c.job_id, func.count()).group_by(job_books.c.job_id)
    counts = {row[0]: row[1] for row in await reader.execute(counted)}
    return [
        JobState(
            job=job,
            cursor=cursors.get((job.name, job.query_set_hash)),
            last_run=last.get((job.id, job.query_set_hash)),
            books=counts.get(job.id, 0),
        )
        for job in await jobs.list_jobs(reader)
    ]


async def find_state(reader: Reader, name: str) -> JobState:
    """Tell how one job stands, or how to find one."""
    await jobs.find_known(reader, name)
    return next(one for one in await list_states(reader) if one.job.name == name)
