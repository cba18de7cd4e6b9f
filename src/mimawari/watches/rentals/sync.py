"""Keeps what pages say about properties: the properties, their history and their ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import delete, select, update

from mimawari.columns import to_micros, to_time
from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.rentals import rules
from mimawari.watches.rentals.models import SITE_NAME, Change, Kind, Seen, Source, Status
from mimawari.watches.rentals.notifications import tell_changes, tell_ended
from mimawari.watches.rentals.tables import changes, is_of, listed, properties, snapshots

KEY = ("site", "property_id")
_COLUMNS = tuple(column.name for column in properties.c)
_CHANGED = tuple(name for name in _COLUMNS if name not in KEY)
_TERMS = tuple(column.name for column in snapshots.c if column.name not in {*KEY, "at", "source"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Who looked, when, and where days begin."""

    job_id: str
    at: datetime
    zone: ZoneInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Which of the properties seen were new, and which were known."""

    new: tuple[str, ...]
    known: tuple[str, ...]


async def keep_seen(tx: Tx, seen: Sequence[Seen], look: Look) -> Kept:
    """Keep properties as they were seen, and tell what changed since they were seen before."""
    once = {one.property_id: one for one in seen}
    old = await _lock(tx, once, look)
    fresh = {key for key, row in old.items() if row["snapshot_on"] == "" and not row["gone_at"]}
    rows, told, shots = [], [], []
    for key, one in once.items():
        row = old[key]
        if row["gone_at"] is not None:
            # The site's own word on its page counts for more than a list that still shows it.
            continue
        found = _list_changes(row, one, is_new=key in fresh)
        rows.append(_seen_row(row, one, look, has_changed=bool(found)))
        told += [_change_row(key, change, look.at, one.source) for change in found]
        if found or row["snapshot_on"] != rows[-1]["snapshot_on"]:
            shots.append(_snapshot_row(rows[-1], look.at, one.source))
    await tx.save(properties, rows, _CHANGED)
    await tx.save(changes, told)
    tell_changes(tx, told, {row["property_id"]: row for row in rows})
    await tx.save(snapshots, shots, _TERMS)
    await _unmiss(tx, list(once))
    known = [key for key in once if key not in fresh]
    return Kept(new=tuple(key for key in once if key in fresh), known=tuple(known))


async def _lock(tx: Tx, once: Mapping[str, Seen], look: Look) -> Mapping[str, dict[str, Any]]:
    """Make rows for those never seen, and return all of them, kept from others until the end."""
    blank = [_blank(once[key], look) for key in sorted(once)]
    await tx.save(properties, blank, ["site"])
    return {row["property_id"]: row for row in await _find_rows(tx, list(once))}


def _blank(seen: Seen, look: Look) -> dict[str, Any]:
    """Make the row of a property before anything is known of it: it has no snapshot yet."""
    given = {
        "site": SITE_NAME,
        "property_id": seen.property_id,
        "status": Status.ACTIVE,
        "url": seen.url,
        "first_seen_at": look.at,
        "last_seen_at": look.at,
        "changed_at": look.at,
        "snapshot_on": "",
    }
    return {**dict.fromkeys(_COLUMNS), **given}


async def _find_rows(tx: Tx, ids: Sequence[str]) -> list[dict[str, Any]]:
    mine = (properties.c.site == SITE_NAME) & properties.c.property_id.in_(ids)
    query = select(properties).where(mine).order_by(properties.c.property_id).with_for_update()
    return [row._asdict() for row in await tx.execute(query)]


def _list_changes(row: Mapping[str, Any], seen: Seen, *, is_new: bool) -> list[Change]:
    if is_new:
        return [Change(kind=Kind.NEW, before=None, after=Status.ACTIVE)]
    found = rules.list_changes(row, seen)
    if row["status"] == Status.ENDED:
        found.append(Change(kind=Kind.STATUS, before=Status.ENDED, after=Status.ACTIVE))
    return found


def _seen_row(
    row: Mapping[str, Any], seen: Seen, look: Look, *, has_changed: bool
) -> dict[str, Any]:
    values = rules.merge(row, seen)
    values |= {"status": Status.ACTIVE, "ended_at": None, "last_seen_at": look.at}
    values["snapshot_on"] = look.at.astimezone(look.zone).date().isoformat()
    if seen.source is Source.DETAIL:
        values["detail_at"] = look.at
    if has_changed:
        values["changed_at"] = look.at
    return values


def _change_row(key: str, change: Change, at: datetime, source: Source) -> dict[str, Any]:
    return {
        "site": SITE_NAME,
        "property_id": key,
        "kind": change.kind,
        "old_value": change.before,
        "new_value": change.after,
        "at": at,
        "source": source,
    }


def _snapshot_row(row: Mapping[str, Any], at: datetime, source: Source) -> dict[str, Any]:
    key = {name: row[name] for name in KEY}
    return {**key, "at": at, "source": source, **{name: row[name] for name in _TERMS}}


async def _unmiss(tx: Tx, ids: Sequence[str]) -> None:
    """Forget that properties were missing from lists: they were seen somewhere."""
    mine = (listed.c.site == SITE_NAME) & listed.c.property_id.in_(ids) & (listed.c.missed > 0)
    await tx.execute(update(listed).where(mine).values(missed=0))


async def mark_gone(tx: Tx, property_id: str, url: str, look: Look) -> None:
    """End a property for good of which it is certain that it is gone, and tell people."""
    if undo := await end_gone(tx, property_id, url, look):
        await tell_gone(tx, undo)


async def end_gone(tx: Tx, property_id: str, url: str, look: Look) -> dict[str, Any]:
    """End a property for good because its page said so; return what `restore_gone` needs.

    Nobody is told before `tell_gone`.
    """
    seen = Seen(property_id=property_id, url=url, source=Source.DETAIL)
    row = (await _lock(tx, {property_id: seen}, look))[property_id]
    if row["gone_at"] is not None:
        return {}
    ended = await _end(tx, [row], look, Source.DETAIL, gone=True)
    return {
        "property_id": property_id,
        "gone_at": to_micros(look.at),
        "ended": bool(ended),
        "status": row["status"],
        "ended_at": row["ended_at"] and to_micros(row["ended_at"]),
        "changed_at": to_micros(row["changed_at"]),
    }


async def tell_gone(tx: Tx, undo: Mapping[str, Any]) -> None:
    """Tell people that a property is off the market, if that ended its story."""
    rows = await _find_rows(tx, [undo["property_id"]])
    if undo["ended"]:
        tell_ended(tx, rows)


async def restore_gone(tx: Tx, undo: Mapping[str, Any]) -> None:
    """Undo `end_gone`; a property that was never seen is forgotten."""
    property_id, gone_at = undo["property_id"], to_time(undo["gone_at"])
    rows = await _find_rows(tx, [property_id])
    if not rows or rows[0]["gone_at"] != gone_at:
        return
    if rows[0]["snapshot_on"] == "":
        await tx.execute(delete(properties).where(is_of(properties, property_id)))
        return
    ended_at = undo["ended_at"] and to_time(undo["ended_at"])
    old = {"status": undo["status"], "ended_at": ended_at, "gone_at": None}
    old["changed_at"] = to_time(undo["changed_at"])
    await tx.execute(update(properties).where(is_of(properties, property_id)).values(old))
    if undo["ended"]:
        for table in (changes, snapshots):
            mine = is_of(table, property_id) & (table.c.at == gone_at)
            by_page = mine & (table.c.source == Source.DETAIL)
            if table is changes:
                by_page &= changes.c.kind == Kind.STATUS
            await tx.execute(delete(table).where(by_page))


async def end_missing(tx: Tx, ids: Sequence[str], look: Look) -> None:
    """End properties that their list has not shown for too long."""
    rows = await _find_rows(tx, ids)
    active = [row for row in rows if row["status"] == Status.ACTIVE]
    tell_ended(tx, await _end(tx, active, look, Source.LIST))


async def _end(
    tx: Tx, rows: Sequence[Mapping[str, Any]], look: Look, source: Source, *, gone: bool = False
) -> Sequence[Mapping[str, Any]]:
    """End properties, and return those of which people may be told."""
    ending = [row for row in rows if row["status"] == Status.ACTIVE]
    # One that was never seen has no story that could end.
    told = [row for row in ending if row["snapshot_on"] != ""]
    values = [
        {
            **row,
            "status": Status.ENDED,
            "ended_at": row["ended_at"] or look.at,
            "changed_at": look.at if row in told else row["changed_at"],
            "gone_at": look.at if gone else None,
        }
        for row in rows
    ]
    ended = Change(kind=Kind.STATUS, before=Status.ACTIVE, after=Status.ENDED)
    await tx.save(properties, values, _CHANGED)
    await tx.save(
        changes, [_change_row(row["property_id"], ended, look.at, source) for row in told]
    )
    shots = [_snapshot_row({**row, "status": Status.ENDED}, look.at, source) for row in told]
    await tx.save(snapshots, shots, _TERMS)
    return told


async def find_gone_at(reader: Reader, property_id: str) -> datetime | None:
    """Tell since when a property is gone for good; None if it is not known to be."""
    query = select(properties.c.gone_at).where(is_of(properties, property_id))
    found: datetime | None = (await reader.execute(query)).scalar()
    return found
