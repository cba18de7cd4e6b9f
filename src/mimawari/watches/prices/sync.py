"""Keeps what crawls find: upsert, inspect, and what must be looked at one by one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update

from mimawari.kernel.ports import Tx
from mimawari.watches.prices import rules
from mimawari.watches.prices.models import Crawl, Found, SellingStatus, Setting, Sight, write_stamp
from mimawari.watches.prices.tables import removed, results, runs, settings, sightings

BATCH = 500
MISMATCH, GONE = "mismatch", "gone"
KEY = ("product_id", "external_id")
_RESULT = tuple(column.name for column in results.c)
_CHANGED = tuple(name for name in _RESULT if name not in {"id", "created_at", *KEY})
_REMOVED = tuple(column.name for column in removed.c if column.name != "id")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a crawl changed, and the results whose own pages are to be read."""

    added: int
    left_out: int
    removed: int
    restored: int
    missing: tuple[int, ...]
    undated: tuple[int, ...]

    @property
    def follow_ups(self) -> tuple[int, ...]:
        """The results to be read one by one, each once."""
        return tuple(dict.fromkeys((*self.missing, *self.undated)))


async def apply_crawl(tx: Tx, crawl: Crawl, setting: Setting) -> Applied:
    """Keep what a crawl found, by the settings of its product."""
    kept, out = await _load(tx, results, crawl), await _load(tx, removed, crawl)
    fitting = [one for one in crawl.found if _fits(setting, one) or one.external_id in kept]
    back = [one.external_id for one in fitting if one.external_id in out]
    restored = await _restore(tx, [out[key] for key in back])
    kept |= {row["external_id"]: row for row in restored}
    added = await _upsert(tx, crawl, fitting, kept)
    moved, returned = await _inspect(tx, crawl, setting, kept, out, set(back))
    await _note_sightings(tx, crawl, fitting)
    applied = Applied(
        added=added,
        left_out=len(crawl.found) - len(fitting),
        removed=moved,
        restored=len(restored) + returned,
        missing=await _sync_for_existence(tx, crawl),
        undated=await _sync_for_sold_out_at(tx, crawl.product_id),
    )
    await _save_run(tx, crawl, applied)
    return applied


def _fits(setting: Setting, one: Found) -> bool:
    return rules.find_mismatch(setting, one.name, one.price) is None


async def _load(tx: Tx, table: Any, crawl: Crawl) -> dict[str, Row]:
    query = select(table).where(table.c.product_id == crawl.product_id).with_for_update()
    found = await tx.execute(query)
    return {row.external_id: row._asdict() for row in found}


async def _upsert(tx: Tx, crawl: Crawl, found: Sequence[Found], kept: dict[str, Row]) -> int:
    """Insert what is new and change what has changed, in one statement; say how many are new."""
    rows, added = [], 0
    for one in found:
        old = kept.get(one.external_id)
        row = _row_of(one, old, crawl)
        if old is not None and all(row[name] == old[name] for name in row if name != "updated_at"):
            continue
        added += old is None
        rows.append(row)
        kept[one.external_id] = {**(old or {}), **row}
    await tx.save(results, rows, _CHANGED, KEY)
    return added


def _row_of(one: Found, old: Row | None, crawl: Crawl) -> Row:
    values = asdict(one)
    del values["listed_at"]
    is_sold = one.selling_status == SellingStatus.SOLD_OUT
    # A search does not say when something was sold; what is on sale again was not.
    sold_out_at = old["sold_out_at"] if old and is_sold else None
    return {
        "product_id": crawl.product_id,
        **values,
        "selling_status": int(one.selling_status),
        "seller_type": int(one.seller_type),
        "sold_out_at": sold_out_at,
        "created_at": old["created_at"] if old else crawl.crawled_at,
        "updated_at": crawl.crawled_at,
    }


async def _inspect(
    tx: Tx,
    crawl: Crawl,
    setting: Setting,
    kept: Mapping[str, Row],
    out: Mapping[str, Row],
    back: set[str],
) -> tuple[int, int]:
    """Take out what does not match the settings, and bring back what does again."""
    wrong = {
        key: reason
        for key, row in kept.items()
        if (reason := rules.find_mismatch(setting, row["name"], row["price"])) is not None
    }
    moved = await take_out(tx, crawl.product_id, wrong, MISMATCH, crawl.crawled_at)
    right = [
        row
        for key, row in out.items()
        if key not in back
        and row["kind"] == MISMATCH
        and rules.find_mismatch(setting, row["name"], row["price"]) is None
    ]
    return moved, len(await _restore(tx, right))


async def take_out(
    tx: Tx, product_id: int, reasons: Mapping[str, str], kind: str, now: datetime
) -> int:
    """Move results to where no figure counts them, each with its reason; say how many."""
    moved = 0
    for some in _batches(list(reasons)):
        mine = (results.c.product_id == product_id) & results.c.external_id.in_(some)
        found = (await tx.execute(select(results).where(mine))).all()
        rows = [
            {
                **row._asdict(),
                "kind": kind,
                "reason": reasons[row.external_id],
                "removed_at": now,
            }
            for row in found
        ]
        await tx.save(removed, rows, _REMOVED)
        await tx.execute(delete(results).where(mine))
        moved += len(rows)
    return moved


async def _restore(tx: Tx, rows: Sequence[Row]) -> list[Row]:
    """Bring results back as they were, under their old ids."""
    again = [{name: row[name] for name in _RESULT} for row in rows]
    await tx.save(results, again, _CHANGED)
    for some in _batches([row["id"] for row in again]):
        await tx.execute(delete(removed).where(removed.c.id.in_(some)))
    return again


def _batches(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


async def _note_sightings(tx: Tx, crawl: Crawl, found: Sequence[Found]) -> None:
    rows = [
        {
            "product_id": crawl.product_id,
            "external_id": one.external_id,
            "listed_at": one.listed_at,
            "last_seen_at": crawl.crawled_at,
            "missing_at": None,
        }
        for one in {one.external_id: one for one in found}.values()
    ]
    await tx.save(sightings, rows, ("listed_at", "last_seen_at", "missing_at"))


async def _sync_for_existence(tx: Tx, crawl: Crawl) -> tuple[int, ...]:
    """Find what is on sale by our books and was missing where it would have been shown."""
    sight = crawl.sight
    if not sight.is_complete:
        # A page that was not read may have shown it.
        return ()
    same = (sightings.c.product_id == results.c.product_id) & (
        sightings.c.external_id == results.c.external_id
    )
    query = (
        select(results.c.id, results.c.external_id, sightings.c.listed_at)
        .join(sightings, same)
        .where(
            results.c.product_id == crawl.product_id,
            results.c.selling_status == int(SellingStatus.ON_SALE),
            sightings.c.last_seen_at < crawl.crawled_at,
            sightings.c.missing_at.is_(None),
        )
    )
    oldest_at = rules.oldest_shown(crawl.found)
    missing = [
        row
        for row in await tx.execute(query)
        if rules.could_be_shown(row.listed_at, oldest_at, is_whole=not sight.capped_on_sale)
    ]
    for some in _batches([row.external_id for row in missing]):
        mine = (sightings.c.product_id == crawl.product_id) & sightings.c.external_id.in_(some)
        await tx.execute(update(sightings).where(mine).values(missing_at=crawl.crawled_at))
    return tuple(row.id for row in missing)


async def _sync_for_sold_out_at(tx: Tx, product_id: int) -> tuple[int, ...]:
    """Find what was sold, nobody knows when."""
    undated = (
        (results.c.product_id == product_id)
        & (results.c.selling_status == int(SellingStatus.SOLD_OUT))
        & results.c.sold_out_at.is_(None)
    )
    query = select(results.c.id).where(undated).order_by(results.c.id)
    return tuple((await tx.execute(query)).scalars())


async def _save_run(tx: Tx, crawl: Crawl, applied: Applied) -> None:
    row = {
        "task_id": crawl.task_id,
        "product_id": crawl.product_id,
        "crawled_at": crawl.crawled_at,
        "found": len(crawl.found),
        "added": applied.added,
        "left_out": applied.left_out,
        "removed": applied.removed,
        "restored": applied.restored,
        "followed_up": len(applied.follow_ups),
        **_sight_values(crawl.sight),
    }
    await tx.save(runs, [row])
    values: Row = {"last_run_at": crawl.crawled_at}
    mine = settings.c.product_id == crawl.product_id
    await tx.execute(update(settings).where(mine).values(values))
    if crawl.sight.is_complete:
        first = mine & settings.c.first_run_at.is_(None)
        await tx.execute(update(settings).where(first).values(first_run_at=crawl.crawled_at))


def _sight_values(sight: Sight) -> Row:
    return {**asdict(sight), "page_errors": "\n".join(sight.page_errors)}


async def find_result(tx: Any, result_id: int) -> Any:
    """Find one result by its id."""
    return (await tx.execute(select(results).where(results.c.id == result_id))).first()


async def save_detail(tx: Tx, row: Any, one: Found, sold_out_at: str | None, now: datetime) -> None:
    """Keep what an item's own page says: its price, its status, and once when it was sold."""
    is_sold = one.selling_status == SellingStatus.SOLD_OUT
    values = {
        "name": one.name,
        "price": one.price,
        "selling_status": int(one.selling_status),
        "sold_out_at": (row.sold_out_at or sold_out_at) if is_sold else None,
        "seller_id": one.seller_id or row.seller_id,
    }
    if any(getattr(row, name) != value for name, value in values.items()):
        mine = results.c.id == row.id
        await tx.execute(update(results).where(mine).values({**values, "updated_at": now}))


async def date_roughly(tx: Tx, row: Any, seen_at: datetime, now: datetime) -> None:
    """Say on which day something was sold, where its own page is gone and cannot tell when."""
    values = {"sold_out_at": write_stamp(seen_at)[:10], "updated_at": now}
    await tx.execute(update(results).where(results.c.id == row.id).values(values))
