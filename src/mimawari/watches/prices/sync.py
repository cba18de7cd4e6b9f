"""Keeps what crawls find: upsert, inspect, and what must be looked at one by one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, select, update

from mimawari.columns.stamps import write_stamp
from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.prices import checks, daily_sales, rules, traits
from mimawari.watches.prices.checks import Checks
from mimawari.watches.prices.models import (
    Crawl,
    Found,
    Product,
    SellingStatus,
    Setting,
    Sight,
)
from mimawari.watches.prices.rules import WORTHLESS
from mimawari.watches.prices.tables import (
    removed,
    results,
    runs,
    settings,
    sightings,
)
from mimawari.watches.prices.traits import Known

BATCH = 500
MISMATCH, GONE = "mismatch", "gone"
KEY = ("product_id", "external_id")
SEEN = (
    *("listed_at", "last_seen_at", "category_id", "condition_id"),
    *WORTHLESS,
)
_RESULT = tuple(column.name for column in results.c)
_CHANGED = tuple(name for name in _RESULT if name not in {"id", "created_at", *KEY})
_FOUND = tuple(field.name for field in fields(Found) if field.name in _RESULT)
_REMOVED = tuple(column.name for column in removed.c if column.name != "id")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What a crawl changed, and the results whose own pages are to be read."""

    added: int
    left_out: int
    removed: int
    restored: int
    checks: Checks

    @property
    def follow_ups(self) -> tuple[int, ...]:
        """The results to be read one by one, each once."""
        return self.checks.all


async def apply_crawl(
    tx: Tx, crawl: Crawl, product: Product, capacity: int | None = None
) -> Applied:
    """Keep what a crawl found, by the settings of its product, which the caller holds.

    `capacity` is how many own pages all products together may read until the next crawl.
    """
    setting = product.setting
    # Results that no crawl shows are looked at only where the settings are new to them.
    keys = None if product.is_changed else [one.external_id for one in crawl.found]
    kept, out = await _load(tx, results, crawl, keys), await _load(tx, removed, crawl, keys)
    known = await traits.load(tx, product.id, keys, crawl.found)
    fitting = [one for one in crawl.found if _fits(setting, one, known) or one.external_id in kept]
    back = [out.pop(one.external_id) for one in fitting if one.external_id in out]
    kept |= {row["external_id"]: row for row in await _restore(tx, back)}
    added, changed = await _upsert(tx, crawl, fitting, kept)
    await _note_sightings(tx, crawl, fitting, kept, known)
    await daily_sales.save_days(tx, product.id, [*back, *changed])
    moved = await _inspect(tx, crawl, product, kept)
    returned = await _return_fitting(tx, crawl, setting, out, known)
    applied = Applied(
        added=added,
        left_out=len(crawl.found) - len(fitting),
        removed=moved,
        restored=len(back) + returned,
        checks=await checks.choose(tx, product, crawl.crawled_at, capacity),
    )
    await _save_run(tx, crawl, applied)
    return applied


def _fits(setting: Setting, one: Found, known: Known) -> bool:
    found = rules.find_mismatch(setting, one.name, one.price, known.find(one.external_id))
    return found is None


async def _load(tx: Tx, table: Any, crawl: Crawl, keys: Sequence[str] | None) -> dict[str, Row]:
    """Load a product's rows, all or those of some items."""
    query = select(table).where(table.c.product_id == crawl.product_id).with_for_update()
    if keys is None:
        return {row.external_id: row._asdict() for row in await tx.execute(query)}
    loaded: dict[str, Row] = {}
    for some in _batches(keys):
        found = await tx.execute(query.where(table.c.external_id.in_(some)))
        loaded |= {row.external_id: row._asdict() for row in found}
    return loaded


async def _upsert(
    tx: Tx, crawl: Crawl, found: Sequence[Found], kept: dict[str, Row]
) -> tuple[int, list[Row]]:
    """Insert what is new and change what has changed; say how many are new, and what changed."""
    rows, before = [], []
    for one in found:
        old = kept.get(one.external_id)
        row = _row_of(one, old, crawl)
        if old is not None and all(row[name] == old[name] for name in row if name != "updated_at"):
            continue
        before += [] if old is None else [old]
        rows.append(row)
        kept[one.external_id] = {**(old or {}), **row}
    await tx.save(results, rows, _CHANGED, KEY)
    return len(rows) - len(before), [*before, *rows]


def _row_of(one: Found, old: Row | None, crawl: Crawl) -> Row:
    is_sold = one.selling_status == SellingStatus.SOLD_OUT
    # A search does not say when something was sold; what is on sale again was not.
    sold_out_at = old["sold_out_at"] if old and is_sold else None
    return {
        "product_id": crawl.product_id,
        **{name: getattr(one, name) for name in _FOUND},
        "selling_status": int(one.selling_status),
        "seller_type": int(one.seller_type),
        "sold_out_at": sold_out_at,
        "created_at": old["created_at"] if old else crawl.crawled_at,
        "updated_at": crawl.crawled_at,
    }


async def _inspect(tx: Tx, crawl: Crawl, product: Product, kept: Mapping[str, Row]) -> int:
    """Take out what does not match the settings, as far as it is known; return how many."""
    wrong = await traits.find_unfit(tx, product)
    wrong |= {
        key: reason
        for key, row in kept.items()
        if (reason := rules.find_mismatch(product.setting, row["name"], row["price"])) is not None
    }
    return await take_out(tx, product.id, wrong, MISMATCH, crawl.crawled_at)


async def _return_fitting(
    tx: Tx, crawl: Crawl, setting: Setting, out: Mapping[str, Row], known: Known
) -> int:
    """Bring back what was taken out and matches the settings again; return how many."""
    right = [
        row
        for key, row in out.items()
        if row["kind"] == MISMATCH
        and rules.find_mismatch(setting, row["name"], row["price"], known.find(key)) is None
    ]
    again = await _restore(tx, right)
    await _save_worth(tx, crawl.product_id, again)
    await daily_sales.save_days(tx, crawl.product_id, again)
    return len(again)


async def take_out(
    tx: Tx, product_id: int, reasons: Mapping[str, str], kind: str, now: datetime
) -> int:
    """Move results to where no figure counts them, each with its reason; say how many."""
    moved: list[Row] = []
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
        nothing = {**WORTHLESS, "asked_at": None}
        await tx.execute(update(sightings).where(_seen(product_id, some)).values(nothing))
        moved += rows
    # Once for all, because packing a day reads all that was sold on it.
    await daily_sales.save_days(tx, product_id, moved)
    return len(moved)


async def restore_gone(tx: Tx, product_id: int, result_id: int) -> None:
    """Bring a result back that was taken out because its page was not there."""
    await daily_sales.hold(tx, product_id)
    mine = (removed.c.id == result_id) & (removed.c.kind == GONE)
    rows = [row._asdict() for row in await tx.execute(select(removed).where(mine))]
    again = await _restore(tx, rows)
    await _save_worth(tx, product_id, again)
    await daily_sales.save_days(tx, product_id, again)


async def _restore(tx: Tx, rows: Sequence[Row]) -> list[Row]:
    """Bring results back as they were, under their old ids."""
    again = [{name: row[name] for name in _RESULT} for row in rows]
    await tx.save(results, again, _CHANGED)
    for some in _batches([row["id"] for row in again]):
        await tx.execute(delete(removed).where(removed.c.id.in_(some)))
    return again


async def _save_worth(tx: Tx, product_id: int, rows: Sequence[Row]) -> None:
    """Write down beside results what they stand for in the figures now."""
    for some in _batches(rows):
        by_key = {row["external_id"]: row for row in some}
        found = await tx.execute(select(sightings).where(_seen(product_id, list(by_key))))
        noted = [
            {**row._asdict(), **rules.worth_of(by_key[row.external_id], row.listed_at)}
            for row in found
        ]
        await tx.save(sightings, noted, tuple(WORTHLESS))


def _seen(product_id: int, keys: Sequence[str]) -> ColumnElement[bool]:
    return (sightings.c.product_id == product_id) & sightings.c.external_id.in_(keys)


def _batches(values: Sequence[Any]) -> Iterable[Sequence[Any]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


async def _note_sightings(
    tx: Tx, crawl: Crawl, found: Sequence[Found], kept: Mapping[str, Row], known: Known
) -> None:
    rows = [
        {
            "product_id": crawl.product_id,
            "external_id": key,
            "listed_at": one.listed_at,
            "last_seen_at": crawl.crawled_at,
            "category_id": known.told[key][0],
            "condition_id": known.told[key][1],
            **rules.worth_of(kept[key], one.listed_at),
        }
        for key, one in {one.external_id: one for one in found}.items()
    ]
    on_sale = [{**row, "asked_at": None} for row in rows if row["on_sale_yen"] is not None]
    # Its own page tells of what was sold what the search does not, so it is still awaited.
    sold = [row for row in rows if row["on_sale_yen"] is None]
    await tx.save(sightings, on_sale, (*SEEN, "asked_at"))
    await tx.save(sightings, sold, SEEN)


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


async def find_result(reader: Reader | Tx, result_id: int) -> Any:
    """Find one result by its id."""
    return (await reader.execute(select(results).where(results.c.id == result_id))).first()


async def hold_result(tx: Tx, result_id: int) -> Any:
    """Find one result as it is once nobody else may change it."""
    found = await find_result(tx, result_id)
    if found is None:
        return None
    await daily_sales.hold(tx, found.product_id)
    return await find_result(tx, result_id)


async def is_read_in_vain(reader: Reader, row: Any, asked_at: datetime) -> bool:
    """Return whether an item's own page would tell nothing new since it was asked for."""
    if row.selling_status == SellingStatus.SOLD_OUT:
        return bool(row.sold_out_at)
    seen = select(sightings.c.last_seen_at).where(_seen(row.product_id, [row.external_id]))
    last_seen_at = (await reader.execute(seen)).scalar()
    return last_seen_at is not None and last_seen_at > asked_at


async def save_detail(tx: Tx, row: Any, one: Found, sold_out_at: str | None, now: datetime) -> None:
    """Keep what an item's own page says: price, status, category, and once when it was sold."""
    is_sold = one.selling_status == SellingStatus.SOLD_OUT
    values = {
        "name": one.name,
        "price": one.price,
        "selling_status": int(one.selling_status),
        "sold_out_at": (row.sold_out_at or sold_out_at) if is_sold else None,
        "seller_id": one.seller_id or row.seller_id,
    }
    await _change(tx, row, values, now)
    told = {"category_id": one.category_id, "condition_id": one.condition_id}
    seen: Row = {name: value for name, value in told.items() if value is not None}
    mine = _seen(row.product_id, [row.external_id])
    seen |= {"last_seen_at": now, "asked_at": None}
    await tx.execute(update(sightings).where(mine).values(seen))


async def inspect_one(tx: Tx, product: Product, one: Found, now: datetime) -> None:
    """Take out an item that does not match the settings as its own page shows it.

    Where the page tells of a category in which others it lies, its like are inspected, too.
    """
    known = await traits.load(tx, product.id, [one.external_id], [one])
    is_news = await traits.learn_place(tx, one)
    wrong = await traits.find_unfit(tx, product) if is_news else {}
    told = replace(known.find(one.external_id), category_above=one.category_above)
    reason = rules.find_mismatch(product.setting, one.name, one.price, told)
    if reason is not None:
        wrong[one.external_id] = reason
    await take_out(tx, product.id, wrong, MISMATCH, now)


async def date_roughly(tx: Tx, row: Any, seen_at: datetime, now: datetime) -> str:
    """Set the day on which something was sold, as its page is gone; return the day."""
    day = write_stamp(seen_at)[:10]
    await _change(tx, row, {"sold_out_at": day}, now)
    mine = _seen(row.product_id, [row.external_id])
    await tx.execute(update(sightings).where(mine).values(asked_at=None))
    return day


async def undate(tx: Tx, result_id: int, day: str, now: datetime) -> None:
    """Undo `date_roughly`."""
    row = await hold_result(tx, result_id)
    if row is not None and row.sold_out_at == day:
        await _change(tx, row, {"sold_out_at": None}, now)


async def _change(tx: Tx, row: Any, values: Row, now: datetime) -> None:
    """Change a result, if anything is new, and what it stands for."""
    if all(getattr(row, name) == value for name, value in values.items()):
        return
    new = {**row._asdict(), **values, "updated_at": now}
    await tx.execute(update(results).where(results.c.id == row.id).values(new))
    await _save_worth(tx, row.product_id, [new])
    await daily_sales.save_days(tx, row.product_id, [row._asdict(), new])
