"""Books that wait for their mail, found and kept as the watch does it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import select

from mimawari.ids import new_id
from mimawari.kernel.values import Event
from mimawari.settings import DEFAULTS, Settings
from mimawari.sites.google_books import Volume, VolumesPage
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import outbox
from mimawari.watches.books import collecting, jobs, mailing
from mimawari.watches.books.collecting import Step
from mimawari.watches.books.cursors import find_cursor
from mimawari.watches.books.mailing import Mail
from mimawari.watches.books.models import BookJob, Run, Search
from tests.net.post_office import ANN, SENDER, Office, Teller

LEASE = timedelta(minutes=1)
FOLDER = TemporaryDirectory(prefix="mimawari-")
"""Where seals are set; it goes when the tests have ended."""


def settings_for(server: Office | Teller | None = None, **given: Any) -> Settings:
    """Return settings that lead to a mail server, or to one that nobody asks."""
    usual = {
        "smtp_host": "127.0.0.1",
        "smtp_port": server.port if server else 1,
        "smtp_security": "none",
        "mail_from": SENDER,
        "data": Path(FOLDER.name),
    }
    return DEFAULTS.model_copy(update={**usual, **given})


def now_of(store: SqlStore) -> datetime:
    """Tell the time that a store lives in."""
    return store.database.clock.now()


async def add_job(store: SqlStore, name: str = "new", **given: Any) -> BookJob:
    """Keep a job, whose books go to Ann unless somebody else is named."""
    usual: dict[str, Any] = {"name": name, "queries": (name,), "recipients": (ANN,)}
    async with store.edit() as tx:
        return await jobs.add_job(tx, Search(**{**usual, **given}), DEFAULTS, now_of(store))


def a_volume(number: int, *, isbn: bool = True) -> Volume:
    """Make up a volume."""
    return Volume(
        id=f"v{number}",
        title=f"Book {number}",
        subtitle=None,
        authors=(),
        publisher=None,
        published=None,
        isbn13=f"978{number:010}" if isbn else None,
        language=None,
        categories=(),
        description=None,
        page_count=None,
        thumbnail=None,
        info_link=None,
    )


async def find_books(
    store: SqlStore, name: str, *volumes: Volume | int, total: int | None = None
) -> None:
    """Have a job find some books, by a run of one page."""
    now = now_of(store)
    found = tuple(a_volume(one) if isinstance(one, int) else one for one in volumes)
    async with store.edit() as tx:
        job = await jobs.find_known(tx, name)
        digits = job.query_set_hash
        run = Run(
            id=new_id(), job_id=job.id, query_set_hash=digits, is_dry=False, started_at=now
        )  # fmt: skip
        step = Step(job=job, cursor=await find_cursor(tx, name, digits), run=run)
        page = VolumesPage(total_items=total, volumes=found, refused=())
        await collecting.keep_page(tx, step, page, 0, now)


async def put_digests(store: SqlStore, settings: Settings) -> list[int]:
    """Put what is new into digests, and tell how many books each has."""
    async with store.edit() as tx:
        return await mailing.put_digests(tx, settings, now_of(store))


async def list_told(store: SqlStore) -> list[tuple[tuple[str, ...], dict[str, list[int]]]]:
    """List the mails, the first one first: to whom, and the numbers of each job's books."""
    async with store.read() as reader:
        mails = sorted(await mailing.list_mails(reader, 100), key=lambda mail: mail.id)
        return [(mail.recipients, await _list_numbers(reader, mail)) for mail in mails]


async def _list_numbers(reader: Any, mail: Mail) -> dict[str, list[int]]:
    return {
        section.name: [int(book.title.removeprefix("Book ")) for book in section.books]
        for section in await mailing.list_sections(reader, mail.id)
    }


async def list_events(store: SqlStore) -> Sequence[Any]:
    """List all events that ever were put."""
    async with store.read() as reader:
        return (await reader.execute(select(outbox))).all()


async def take_event(store: SqlStore) -> Event:
    """Take the one event that is due."""
    (event,) = await store.outbox.take(now_of(store), 10, LEASE)
    return event


async def find_mail(store: SqlStore, event: Event) -> Mail:
    """Find the mail of an event."""
    async with store.read() as reader:
        found = await mailing.find_mail(reader, event.body["mail_id"])
    assert found is not None
    return found
