"""Routes of the example watch."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from annotated_types import Ge, Le
from fastapi import APIRouter, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException

from mimawari.edges.routes import SystemOf
from mimawari.kernel.values import Entry
from mimawari.text import plain_digits, whole_number
from mimawari.watches._template import sync
from mimawari.watches._template.tables import pages

router = APIRouter(prefix="/api/example")

Seconds = Annotated[int, Ge(10), Le(7 * 86400), BeforeValidator(whole_number)]
Most = Annotated[int, Ge(1), Le(500), BeforeValidator(plain_digits), Query()]


class PageIn(BaseModel):
    """A page to go round to."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field(min_length=1, max_length=150, pattern="^[a-z0-9-]+$")
    url: str = Field(max_length=500, pattern=r"^https?://[!-~]+$")
    every_seconds: Seconds = 60


class PageOut(BaseModel):
    """A page and what was read from it last."""

    name: str
    url: str
    every_seconds: int
    number: int | None
    readings: int
    read_at: datetime | None


class PagesOut(BaseModel):
    """All pages."""

    pages: list[PageOut]


@router.get("/pages")
async def list_pages(system: SystemOf, limit: Most = 100) -> PagesOut:
    """List the pages."""
    async with system.store.read() as reader:
        rows = await reader.execute(select(pages).order_by(pages.c.name).limit(limit))
        shown = [
            PageOut(
                name=row.name,
                url=row.url,
                every_seconds=row.every_s,
                number=row.number,
                readings=row.readings,
                read_at=row.read_at and datetime.fromtimestamp(row.read_at, UTC),
            )
            for row in rows
        ]
    return PagesOut(pages=shown)


@router.post("/pages", status_code=201)
async def add_page(system: SystemOf, page: PageIn) -> PageOut:
    """Go round to one more page, from now on."""
    every = timedelta(seconds=page.every_seconds)
    entry = Entry(
        member=sync.member_of(page.name),
        kind="example.read",
        args={"page": page.name, "url": page.url, "every_s": page.every_seconds},
        next_at=system.clock.now(),
        every=every,
        reason="first run",
    )
    try:
        async with system.store.edit() as tx:
            await sync.save_page(tx, page.name, page.url, every)
            tx.place(entry)
    except IntegrityError as error:
        message = f"there is a page {page.name!r} already; choose another name"
        raise HTTPException(409, message) from error
    return PageOut(
        name=page.name,
        url=page.url,
        every_seconds=page.every_seconds,
        number=None,
        readings=0,
        read_at=None,
    )
