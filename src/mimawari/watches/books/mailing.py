"""Which books go into which digest, kept in the commit that also puts it into the outbox."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256
from itertools import groupby
from typing import Any

from sqlalchemy import Select, case, delete, exists, func, or_, select, true, update

from mimawari.errors import BadInput
from mimawari.ids import new_id
from mimawari.kernel.ports import Reader, Tx
from mimawari.net.envelope import relay_of
from mimawari.settings import Settings
from mimawari.watches.books.digest import Book, Digest, Language, Section
from mimawari.watches.books.tables import books, deliveries, job_books, jobs, mails, runs

UNDER_WAY_FOR = timedelta(hours=1)
"""A run that is open for longer is not waited for: its process died for good."""
UNSAID = "nobody@localhost"
NOBODY = "[]"
"""What a job keeps that names no recipients."""
SCHEME = "digest"
KIND = "books.digest"


class MailState(StrEnum):
    """Where a mail stands: once its end is on the way nobody sends it again."""

    PENDING = "pending"
    ENDING = "ending"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A book that its job's recipients were not told of."""

    job_name: str
    book_key: str
    kept_recipients: str
    recipients: tuple[str, ...]
    book: Book


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A digest and what became of it."""

    id: str
    recipients: tuple[str, ...]
    language: Language
    books: int
    state: MailState
    reason: str | None
    attempts: int
    created_at: datetime
    changed_at: datetime


def why_not(settings: Settings) -> str | None:
    """Tell why no mail can be sent at all; None if it can."""
    try:
        relay = relay_of(settings)
    except BadInput as error:
        return str(error)
    return None if relay else "no mail server is set; set MIMAWARI_SMTP_HOST"


async def is_under_way(reader: Reader | Tx, now: datetime) -> bool:
    """Say whether a run is under way, whose end asks for a digest of all."""
    is_open = runs.c.ended_at.is_(None) & (runs.c.started_at > now - UNDER_WAY_FOR)
    query = select(runs.c.id).where(is_open, runs.c.is_dry.is_(False)).limit(1)
    return (await reader.execute(query)).first() is not None


async def list_waiting(reader: Reader | Tx, settings: Settings) -> list[Waiting]:
    """List what the next digests hold: of each job the books found first, each once a list.

    Where nobody is named to get them, `recipients` is empty.
    """
    mine = _select_waiting(settings).subquery()
    query = select(mine).where(mine.c.number <= mine.c.mail_limit)
    rows = await reader.execute(query.order_by(mine.c.job_name, mine.c.number))
    found: dict[tuple[tuple[str, ...], str], Waiting] = {}
    for row in rows:
        one = _make_waiting(row, settings)
        found.setdefault((one.recipients, one.book_key), one)
    return list(found.values())


async def count_waiting(reader: Reader | Tx, settings: Settings) -> int:
    """Count the books that wait for digests, each once a list, however few the next one holds."""
    mine = _select_waiting(settings).subquery()
    recipients = case((mine.c.recipients == NOBODY, _usual(settings)), else_=mine.c.recipients)
    each = select(recipients, mine.c.book_key).distinct().subquery()
    query = select(func.count()).select_from(each)
    counted: int = (await reader.execute(query)).scalar_one()
    return counted


def _select_waiting(settings: Settings) -> Select[Any]:
    """Select what was not told yet of each job, numbered in the order in which it was found."""
    told = exists().where(
        deliveries.c.book_key == job_books.c.book_key,
        or_(
            deliveries.c.job_name == jobs.c.name,
            deliveries.c.recipients == jobs.c.recipients,
            (jobs.c.recipients == NOBODY) & (deliveries.c.recipients == _usual(settings)),
        ),
    )
    order = (job_books.c.found_at, job_books.c.place, job_books.c.book_key)
    place = func.row_number().over(partition_by=job_books.c.job_id, order_by=order)
    is_mailed = true() if settings.books_mail_unnumbered else books.c.isbn13.is_not(None)
    return (
        select(
            jobs.c.name.label("job_name"), jobs.c.recipients, jobs.c.mail_limit, books,
            place.label("number"),
        )
        .join(job_books, job_books.c.job_id == jobs.c.id)
        .join(books, books.c.book_key == job_books.c.book_key)
        .where(jobs.c.enabled.is_(True), is_mailed, ~told)
    )  # fmt: skip


def _usual(settings: Settings) -> str:
    """Write who gets mail where nobody is named, as a job would keep them."""
    return json.dumps(settings.mail_to)


def _make_waiting(row: Any, settings: Settings) -> Waiting:
    kept = _usual(settings) if row.recipients == NOBODY else row.recipients
    return Waiting(
        job_name=row.job_name,
        book_key=row.book_key,
        kept_recipients=kept,
        recipients=tuple(dict.fromkeys(json.loads(kept))),
        book=make_book(row),
    )


def make_book(row: Any) -> Book:
    """Make a book as a digest tells of it."""
    return Book(
        title=row.title,
        subtitle=row.subtitle,
        authors=tuple(json.loads(row.authors)),
        publisher=row.publisher,
        published=row.published,
        isbn13=row.isbn13,
        description=row.description,
        thumbnail=row.thumbnail,
        info_link=row.info_link,
    )


async def put_digests(tx: Tx, settings: Settings, now: datetime) -> list[int]:
    """Put one digest for each list of recipients into the outbox; say how many books each has."""
    # Held, so that of two that do this at once the second finds nothing left.
    await tx.execute(select(jobs.c.id).order_by(jobs.c.id).with_for_update())
    waiting = await list_waiting(tx, settings)
    return [
        await _put_digest(tx, recipients, some, settings, now)
        for recipients, some in _by_list(waiting).items()
        if recipients
    ]


def _by_list(waiting: Sequence[Waiting]) -> dict[tuple[str, ...], list[Waiting]]:
    lists: dict[tuple[str, ...], list[Waiting]] = {}
    for one in waiting:
        lists.setdefault(one.recipients, []).append(one)
    return lists


def preview_digests(waiting: Sequence[Waiting], settings: Settings, now: datetime) -> list[Digest]:
    """Make the digests as they would be written now, also where nobody is named to get them."""
    unsaid = settings.model_copy(update={"mail_from": settings.mail_from or UNSAID})
    found = []
    for recipients, some in _by_list(waiting).items():
        mail = Mail(
            id="preview",
            recipients=recipients or (UNSAID,),
            language=settings.mail_language,
            books=len(some),
            state=MailState.PENDING,
            reason=None,
            attempts=0,
            created_at=now,
            changed_at=now,
        )
        sections = make_sections([(one.job_name, one.book) for one in some])
        found.append(make_digest(mail, sections, unsaid))
    return found


async def _put_digest(
    tx: Tx,
    recipients: tuple[str, ...],
    waiting: Sequence[Waiting],
    settings: Settings,
    now: datetime,
) -> int:
    mail_id = new_id()
    row = {
        "id": mail_id,
        "recipients": json.dumps(recipients),
        "language": settings.mail_language,
        "books": len(waiting),
        "state": MailState.PENDING,
        "reason": None,
        "attempts": 0,
        "created_at": now,
        "changed_at": now,
    }
    items = [
        {
            "job_name": one.job_name,
            "book_key": one.book_key,
            "mail_id": mail_id,
            "recipients": one.kept_recipients,
            "place": place,
        }
        for place, one in enumerate(waiting)
    ]
    await tx.save(mails, [row])
    await tx.save(deliveries, items)
    # A list gets its mails in their order, and none waits for another list's.
    lane = f"{KIND}:{sha256(str(recipients).encode()).hexdigest()[:32]}"
    tx.emit(lane, KIND, {"mail_id": mail_id}, destination=f"{SCHEME}:{mail_id}")
    return len(waiting)


def make_mail(row: Any) -> Mail:
    """Make a mail of its row."""
    given = {name: getattr(row, name) for name in Mail.__dataclass_fields__}
    recipients = tuple(json.loads(row.recipients))
    return Mail(**{**given, "recipients": recipients, "state": MailState(row.state)})


async def find_mail(reader: Reader | Tx, mail_id: str) -> Mail | None:
    """Find a mail by its id."""
    row = (await reader.execute(select(mails).where(mails.c.id == mail_id))).first()
    return None if row is None else make_mail(row)


async def list_mails(reader: Reader | Tx, most: int, offset: int = 0) -> list[Mail]:
    """List mails, the newest first."""
    query = select(mails).order_by(mails.c.created_at.desc(), mails.c.id.desc())
    return [make_mail(row) for row in await reader.execute(query.limit(most).offset(offset))]


async def count_mails(reader: Reader | Tx) -> int:
    """Count the mails that were ever written."""
    return int((await reader.execute(select(func.count()).select_from(mails))).scalar_one())


async def list_sections(reader: Reader | Tx, mail_id: str) -> tuple[Section, ...]:
    """List what a mail tells, by job."""
    query = (
        select(deliveries.c.job_name, books)
        .join(books, books.c.book_key == deliveries.c.book_key)
        .where(deliveries.c.mail_id == mail_id)
        .order_by(deliveries.c.place)
    )
    found = [(row.job_name, make_book(row)) for row in await reader.execute(query)]
    return make_sections(found)


def make_sections(found: Sequence[tuple[str, Book]]) -> tuple[Section, ...]:
    """Put books together by the job that found them, in their order."""
    return tuple(
        Section(name=name, books=tuple(book for _, book in some))
        for name, some in groupby(found, key=lambda one: one[0])
    )


def make_digest(mail: Mail, sections: tuple[Section, ...], settings: Settings) -> Digest:
    """Say what goes into a mail; the same at every attempt."""
    domain = settings.mail_from.rpartition("@")[2]
    return Digest(
        sections=sections,
        language=mail.language,
        day=mail.created_at.astimezone(settings.zone).date(),
        sent_at=mail.created_at.astimezone(settings.zone),
        message_id=f"<books-{mail.id}@{domain}>",
        sender=settings.mail_from,
        recipients=mail.recipients,
        unsubscribe=settings.mail_unsubscribe or settings.mail_from,
    )


async def mark(tx: Tx, mail: Mail, now: datetime) -> bool:
    """Keep how a mail stands, unless its end is decided or another's; say whether it was not."""
    is_mine = (mails.c.state == MailState.ENDING) & (mails.c.attempts == mail.attempts)
    is_open = (mails.c.state == MailState.PENDING) | is_mine
    values = {
        "state": mail.state, "reason": mail.reason, "attempts": mail.attempts, "changed_at": now
    }  # fmt: skip
    query = update(mails).where(mails.c.id == mail.id, is_open).values(values)
    return bool((await tx.execute(query)).rowcount)


async def begin_end(tx: Tx, mail: Mail, now: datetime) -> bool:
    """Keep that a mail's end is on its way; say whether it was not before."""
    mine = (mails.c.id == mail.id) & (mails.c.state == MailState.PENDING)
    values = {"state": MailState.ENDING, "attempts": mail.attempts, "changed_at": now}
    return bool((await tx.execute(update(mails).where(mine).values(values))).rowcount)


async def free_books(tx: Tx, mail_id: str) -> None:
    """Let the books of a mail that was not delivered go into the next one."""
    await tx.execute(delete(deliveries).where(deliveries.c.mail_id == mail_id))


async def reset(tx: Tx, job_name: str) -> int:
    """Forget what was mailed of a job's books, so that they are again; say how many those were."""
    gone = await tx.execute(delete(deliveries).where(deliveries.c.job_name == job_name))
    return int(gone.rowcount)
