"""The jobs as they stand in a file of all targets: as in jobs.yaml."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from pydantic import Field

from mimawari.edges.request_fields import Sent
from mimawari.edges.target_file import Declared, Keeping
from mimawari.kernel.ports import Reader, Tx
from mimawari.settings import Settings
from mimawari.text import format_duration, parse_duration
from mimawari.watches.books import jobs
from mimawari.watches.books.jobs_file import describe
from mimawari.watches.books.models import (
    USUAL_EVERY,
    USUAL_MAIL_LIMIT,
    USUAL_PER_RUN,
    BookJob,
    Search,
)


class GoogleBooksEntry(Sent):
    """What is told to the site beside the queries."""

    printType: str | None = None  # noqa: N815 - as the site names it
    langRestrict: str | None = None  # noqa: N815 - the same


class JobEntry(Sent):
    """A job that collects books."""

    name: str
    queries: list[str]
    enabled: bool = True
    google_books: GoogleBooksEntry = Field(default_factory=GoogleBooksEntry)
    interval: str = format_duration(USUAL_EVERY)
    mail_limit: int = USUAL_MAIL_LIMIT
    max_per_run: int = USUAL_PER_RUN
    recipients: list[str] = Field(default_factory=list)


def _make(entry: JobEntry, _settings: Settings) -> Search:
    return Search(
        name=entry.name,
        queries=tuple(entry.queries),
        enabled=entry.enabled,
        every_for=parse_duration(entry.interval),
        mail_limit=entry.mail_limit,
        max_per_run=entry.max_per_run,
        print_type=entry.google_books.printType,
        lang_restrict=entry.google_books.langRestrict,
        recipients=tuple(entry.recipients),
    )


async def _list(reader: Reader | Tx) -> Sequence[Search]:
    return [_plain(job) for job in await jobs.list_jobs(reader)]


def _plain(job: BookJob) -> Search:
    return Search(**{each.name: getattr(job, each.name) for each in fields(Search)})


def _write(search: Search) -> Mapping[str, Any]:
    return describe(search)


async def _keep(tx: Tx, search: Search, keeping: Keeping) -> None:
    if keeping.is_new:
        await jobs.add_job(tx, search, keeping.settings, keeping.now)
    else:
        await jobs.change_job(tx, search.name, lambda _: search, keeping.settings, keeping.now)


declared = Declared(
    section="books",
    form=JobEntry,
    make=_make,
    key_of=lambda search: search.name,
    list=_list,
    write=_write,
    keep=_keep,
)
