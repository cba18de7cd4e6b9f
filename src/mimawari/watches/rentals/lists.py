"""The site's lists: those walked over once, saved searches, and how far a walk has come."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from sqlalchemy import delete, func, select, update

from mimawari.errors import BadInput
from mimawari.kernel.job import AT_ONCE, NewJob
from mimawari.kernel.naming import Naming
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target
from mimawari.settings import Settings
from mimawari.sites.yahoo_realestate import ListPage, parse_list_url
from mimawari.text import format_duration
from mimawari.watches.rentals import rules, sync
from mimawari.watches.rentals.models import SITE_NAME, RentalList, Run, Status, Walk
from mimawari.watches.rentals.sync import Kept, Look
from mimawari.watches.rentals.tables import listed, lists, properties, runs

KIND = "rentals.list"
DAILY_KIND = "rentals.daily"
DAILY_MEMBER = "rentals:daily"
DAY = timedelta(days=1)
NAMING = (
    Naming(member="rentals:list:([0-9]{1,9})", names=select(lists.c.id, lists.c.url.label("name"))),
    Naming(
        member="rentals:([^:]+)",
        parse_id=str,
        names=select(
            properties.c.property_id.label("id"),
            func.coalesce(properties.c.building_name, properties.c.title).label("name"),
        ).where(properties.c.site == SITE_NAME),
    ),
)


def member_of(list_id: int) -> str:
    """Name a list's place on the schedule."""
    return f"rentals:list:{list_id}"


def write_walk(walk: Walk) -> dict[str, Any]:
    """Write how a walk goes on, as its next job carries it."""
    return {name: getattr(walk, name) for name in Walk.__dataclass_fields__}


def parse_walk(args: Any) -> Walk:
    """Read how a walk goes on; a job that nobody of us wrote is refused."""
    try:
        return Walk(**args)
    except TypeError as error:
        raise BadInput(f"these arguments are no walk over a list: {error}") from error


async def add_list(
    tx: Tx, url: str, limit: int, every_for: timedelta | None, settings: Settings, now: datetime
) -> RentalList:
    """Keep a list; with an interval it is a saved search from now on, and walked over at once."""
    wanted = parse_list_url(url, settings.rentals_url)
    known = sha256(wanted.encode()).hexdigest()
    query = select(lists).where(lists.c.url_hash == known)
    row = (await tx.execute(query)).first()
    if row is None:
        values = {"url": wanted, "url_hash": known, "limit_rooms": limit}
        await tx.save(lists, [{**values, "created_at": now}])
        row = (await tx.execute(query)).one()
    if every_for is not None:
        seconds = round(every_for.total_seconds())
        change = {"limit_rooms": limit, "every_seconds": seconds}
        await tx.execute(update(lists).where(lists.c.id == row.id).values(change))
        row = (await tx.execute(query)).one()
        tx.place(_entry(make_list(row), now))
    tx.place_new(daily_entry(settings, now))
    return make_list(row)


def make_list(row: Any) -> RentalList:
    """Make a list of its row."""
    seconds = row.every_seconds
    return RentalList(
        id=row.id,
        url=row.url,
        limit=row.limit_rooms,
        every_for=None if seconds is None else timedelta(seconds=seconds),
        created_at=row.created_at,
        last_run_at=row.last_run_at,
        gone_at=row.gone_at,
    )


def daily_entry(settings: Settings, now: datetime) -> Entry:
    """Place the daily round of known properties on the schedule."""
    at = rules.next_daily(now, settings.zone)
    reason = f"daily at {rules.DAILY_AT:%H:%M}"
    return Entry(member=DAILY_MEMBER, kind=DAILY_KIND, next_at=at, every=DAY, reason=reason)


def _entry(found: RentalList, now: datetime) -> Entry:
    every = found.every_for or DAY
    return Entry(
        member=member_of(found.id),
        kind=KIND,
        args=write_walk(walk_of(found, "scheduler")),
        next_at=now,
        every=every,
        reason=f"every {format_duration(every)}",
    )


def walk_of(found: RentalList, caller: str, limit: int | None = None) -> Walk:
    """Begin a walk over a list."""
    return Walk(list_id=found.id, url=found.url, left=limit or found.limit, caller=caller)


def walk_job(walk: Walk) -> NewJob:
    """Ask for a walk over a list, or for its next page; one list is walked over once at a time."""
    member = member_of(walk.list_id)
    return NewJob(
        kind=KIND, args=write_walk(walk), dedupe_key=member, target=member, priority=AT_ONCE
    )


async def list_targets(reader: Reader, settings: Settings) -> Sequence[Target]:
    """List the saved searches and the daily round; the schedule is rebuilt from these."""
    del settings
    rows = (await reader.execute(select(lists).order_by(lists.c.id))).all()
    saved = [make_list(row) for row in rows if row.every_seconds is not None and not row.gone_at]
    found = [
        Target(
            member=member_of(one.id),
            kind=KIND,
            args=write_walk(walk_of(one, "scheduler")),
            every=one.every_for or DAY,
            last_run_at=one.last_run_at,
        )
        for one in saved
    ]
    daily = Target(member=DAILY_MEMBER, kind=DAILY_KIND, every=DAY)
    return [*found, daily] if rows else []


async def find_list(reader: Reader, list_id: int) -> RentalList | None:
    """Find a list by its id."""
    row = (await reader.execute(select(lists).where(lists.c.id == list_id))).first()
    return None if row is None else make_list(row)


async def list_saved(reader: Reader) -> list[RentalList]:
    """List the saved searches."""
    query = select(lists).where(lists.c.every_seconds.is_not(None)).order_by(lists.c.id)
    return [make_list(row) for row in await reader.execute(query)]


async def remove_list(tx: Tx, list_id: int) -> bool:
    """Forget a saved search, with its runs; what it found stays. Say whether it was there."""
    removed = await tx.execute(delete(lists).where(lists.c.id == list_id))
    tx.remove(member_of(list_id))
    return bool(removed.rowcount)


async def find_run(reader: Reader, run_id: str) -> Run | None:
    """Find a walk by the id of its first job."""
    row = (await reader.execute(select(runs).where(runs.c.id == run_id))).first()
    return None if row is None else make_run(row)


def make_run(row: Any) -> Run:
    """Make a run of its row."""
    return Run(**{name: getattr(row, name) for name in Run.__dataclass_fields__})


def is_cut(walk: Walk, page: ListPage) -> bool:
    """Say whether a page has more rooms than the walk may still take."""
    return len(page.rooms) > walk.left


def following(walk: Walk, page: ListPage, run_id: str) -> Walk | None:
    """Tell how a walk goes on after a page; None where it ends."""
    left = walk.left - len(page.rooms)
    if left <= 0 or page.next_url is None:
        return None
    return Walk(
        list_id=walk.list_id,
        url=page.next_url,
        left=left,
        caller=walk.caller,
        page=walk.page + 1,
        run_id=run_id,
    )


async def keep_page(
    tx: Tx, walk: Walk, page: ListPage, kept: Kept, following_id: str | None, look: Look
) -> Run:
    """Count a page towards its run, and end the run where it has come to its end."""
    run_id = walk.run_id or look.job_id
    before = await find_run(tx, run_id) or _begin(run_id, walk, look)
    run = replace(
        before,
        job_id=following_id or look.job_id,
        ended_at=None if following_id else look.at,
        pages=before.pages + 1,
        found=before.found + len(kept.new) + len(kept.known),
        refused=before.refused + len(page.refused),
        new_to_queue=before.new_to_queue + len(kept.new),
        already_known=before.already_known + len(kept.known),
        is_whole=before.is_whole and _is_complete(walk, page),
        ended_as="" if following_id else _reason(walk, page),
    )
    values = {name: getattr(run, name) for name in Run.__dataclass_fields__}
    await tx.save(runs, [values], [name for name in values if name != "id"])
    await _keep_listed(tx, run, [*kept.new, *kept.known])
    if run.ended_at is not None:
        await _end_run(tx, run, look)
    return run


def _begin(run_id: str, walk: Walk, look: Look) -> Run:
    return Run(
        id=run_id,
        list_id=walk.list_id,
        job_id=look.job_id,
        started_at=look.at,
        ended_at=None,
        pages=0,
        found=0,
        refused=0,
        new_to_queue=0,
        already_known=0,
        is_whole=True,
        ended_as="",
    )


def _is_complete(walk: Walk, page: ListPage) -> bool:
    """Say whether a page, as it was walked over, leaves nothing out of its run."""
    begins = walk.run_id is not None or page.current_page in {None, 1}
    goes_on = page.next_url is None or walk.left > len(page.rooms)
    return begins and goes_on and not page.refused and not is_cut(walk, page)


def _reason(walk: Walk, page: ListPage) -> str:
    if is_cut(walk, page) or page.next_url is not None:
        return "the limit of rooms was reached"
    return "the last page was read"


async def _keep_listed(tx: Tx, run: Run, ids: Sequence[str]) -> None:
    rows = [
        {
            "list_id": run.list_id,
            "site": SITE_NAME,
            "property_id": key,
            "run_id": run.id,
            "missed": 0,
        }
        for key in sorted(ids)
    ]
    await tx.save(listed, rows, ["run_id", "missed"])


async def _end_run(tx: Tx, run: Run, look: Look) -> None:
    """Note when the list was read; after a whole run count what it did not show as missing."""
    await tx.execute(update(lists).where(lists.c.id == run.list_id).values(last_run_at=look.at))
    if not run.is_whole:
        return
    absent = (listed.c.list_id == run.list_id) & (listed.c.run_id != run.id)
    await tx.execute(update(listed).where(absent).values(missed=listed.c.missed + 1))
    query = select(listed.c.property_id).where(absent, listed.c.missed >= rules.MISSES)
    ids = list((await tx.execute(query)).scalars())
    if ids:
        await sync.end_missing(tx, ids, look)


async def mark_gone(tx: Tx, list_id: int, now: datetime) -> dict[str, Any]:
    """Never ask for a list again: the site said that it is gone. Return what undoes it."""
    await tx.execute(update(lists).where(lists.c.id == list_id).values(gone_at=now))
    tx.remove(member_of(list_id))
    return {"list_id": list_id}


async def restore_gone(tx: Tx, list_id: int, now: datetime) -> None:
    """Undo `mark_gone`: a saved search is walked over again at its interval."""
    await tx.execute(update(lists).where(lists.c.id == list_id).values(gone_at=None))
    found = await find_list(tx, list_id)
    if found is not None and found.every_for is not None:
        tx.place_new(_entry(found, now + found.every_for))


async def list_urls(reader: Reader) -> list[str]:
    """List the addresses of the lists that are not gone, the one that was read last first."""
    query = select(lists.c.url).where(lists.c.gone_at.is_(None))
    order = (lists.c.last_run_at.is_(None), lists.c.last_run_at.desc(), lists.c.id)
    return list((await reader.execute(query.order_by(*order))).scalars())


async def find_shown(reader: Reader, since: datetime) -> str | None:
    """Find the page of a property that a list has shown since a time, the latest first."""
    of_run = (runs.c.id == listed.c.run_id) & (runs.c.started_at >= since)
    of_property = (properties.c.site == listed.c.site) & (
        properties.c.property_id == listed.c.property_id
    )
    query = (
        select(properties.c.url)
        .join_from(listed, runs, of_run)
        .join(properties, of_property)
        .where(properties.c.status == Status.ACTIVE, properties.c.gone_at.is_(None))
        .order_by(runs.c.started_at.desc(), properties.c.property_id)
    )
    url: str | None = (await reader.execute(query.limit(1))).scalar()
    return url
