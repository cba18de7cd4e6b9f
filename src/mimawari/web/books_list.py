"""The page of the books that were found."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime

from pydantic import BaseModel
from starlette.responses import Response

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.watches.books import jobs, queries
from mimawari.web.visit import Visit

A_PAGE = 50


class Row(BaseModel):
    """A book as a line of a file."""

    book_key: str
    isbn13: str | None
    title: str
    subtitle: str | None
    authors: list[str]
    publisher: str | None
    published: str | None
    language: str | None
    categories: list[str]
    page_count: int | None
    info_link: str | None
    first_job: str
    first_seen_at: datetime
    last_seen_at: datetime


async def show(visit: Visit) -> Response:
    """List books, those found last first, or write them to a file."""
    job_name = visit.text("job") or None
    if visit.text("format") == "csv":
        pieces = _pieces(visit, job_name)
        return await csv_export.download("books", list(Row.model_fields), pieces)
    offset = visit.number("offset", 0)
    async with visit.system.store.read() as reader:
        found = await queries.list_books(reader, A_PAGE, job_name, offset)
        total = await queries.count_books(reader, job_name)
        names = [job.name for job in await jobs.list_jobs(reader)]
    return visit.page(
        "books/list.html",
        found=found,
        total=total,
        limit=A_PAGE,
        offset=offset,
        names=names,
        chosen=job_name,
    )


async def _pieces(visit: Visit, job_name: str | None) -> AsyncIterator[Sequence[BaseModel]]:
    async def fetch(offset: int, most: int) -> Sequence[tuple[int, Row]]:
        async with visit.system.store.read() as reader:
            found = await queries.list_books(reader, most, job_name, offset)
        rows = [Row.model_validate(_fields(one)) for one in found]
        return list(enumerate(rows, offset + 1))

    listing = Listing(fetch=fetch, start=0, place_of=lambda one: one[0])
    async for piece in pagination.walk(listing, None):
        yield [row for _, row in piece]


def _fields(one: queries.KeptBook) -> dict[str, object]:
    values = {name: getattr(one, name) for name in Row.model_fields}
    return {**values, "authors": list(one.authors), "categories": list(one.categories)}


PAGES = (("/books/list", show, ("GET",)),)
