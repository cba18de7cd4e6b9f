"""Reads and writes what this watch keeps; never the network."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert, select, update

from mimawari.kernel.job import Job
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.watch import Target
from mimawari.settings import Settings
from mimawari.watches._template.models import Reading
from mimawari.watches._template.tables import notes, pages, readings


def member_of(page: str) -> str:
    """Name a page's place on the schedule."""
    return f"example:{page}"


async def list_targets(reader: Reader, _settings: Settings) -> Sequence[Target]:
    """List every page as a target; the schedule is rebuilt from these."""
    rows = await reader.execute(select(pages).order_by(pages.c.name))
    return [
        Target(
            member=member_of(row.name),
            kind="example.read",
            args={"page": row.name, "url": row.url, "every_s": row.every_s},
            every=timedelta(seconds=row.every_s),
            last_run_at=row.read_at and datetime.fromtimestamp(row.read_at, UTC),
        )
        for row in rows
    ]


async def find_number(tx: Tx, page: str) -> int | None:
    """Tell what was read from a page last."""
    row = (await tx.execute(select(pages.c.number).where(pages.c.name == page))).first()
    return None if row is None else row.number


async def save_page(tx: Tx, page: str, url: str, every: timedelta) -> None:
    """Keep a new page to go round to."""
    values = {"name": page, "url": url, "every_s": int(every.total_seconds()), "readings": 0}
    await tx.execute(insert(pages).values(values))


async def save_reading(tx: Tx, job: Job, reading: Reading) -> None:
    """Keep one reading."""
    read_at = int(reading.read_at.timestamp())
    values = {"page": reading.page, "number": reading.number, "read_at": read_at}
    await tx.execute(insert(readings).values(job_id=job.id, **values))
    await tx.execute(
        update(pages)
        .where(pages.c.name == reading.page)
        .values(number=reading.number, readings=pages.c.readings + 1, read_at=read_at)
    )


async def save_note(tx: Tx, job: Job) -> None:
    """Keep that a follow-up job ran."""
    await tx.execute(insert(notes).values(job_id=job.id, parent_id=job.args["parent_id"]))
