"""What items are filed under and how worn they are, as pages have told."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, or_, select

from mimawari.kernel.ports import Tx
from mimawari.watches.prices.models import Found, Product, Traits
from mimawari.watches.prices.rules import find_other_kind
from mimawari.watches.prices.tables import SAME_ITEM, categories, results, sightings

BATCH = 500
MOST_UNPLACED = 20
"""How many categories that nobody can place yet are looked up after one crawl."""

Places = Mapping[int, tuple[int, ...]]
"""Categories with those that they lie in."""


@dataclass(frozen=True, slots=True)
class Known:
    """The category and the condition of a product's items, and where categories lie."""

    told: Mapping[str, tuple[int | None, int | None]]
    places: Places

    def find(self, external_id: str) -> Traits:
        """Return all that is known of an item."""
        category_id, condition_id = self.told.get(external_id, (None, None))
        above = None if category_id is None else self.places.get(category_id)
        return Traits(category_id=category_id, category_above=above, condition_id=condition_id)


async def load(
    tx: Tx, product_id: int, keys: Sequence[str] | None, found: Sequence[Found]
) -> Known:
    """Load what is known of a product's items, all or some, with what a crawl has found."""
    at = sightings.c
    query = select(at.external_id, at.category_id, at.condition_id)
    query = query.where(at.product_id == product_id)
    told: dict[str, tuple[int | None, int | None]] = {}
    for some in _batches(keys) if keys is not None else (None,):
        mine = query if some is None else query.where(at.external_id.in_(some))
        told |= {key: (filed, worn) for key, filed, worn in await tx.execute(mine)}
    for one in found:
        filed, worn = told.get(one.external_id, (None, None))
        # A page that does not tell leaves what an earlier one told.
        told[one.external_id] = (one.category_id or filed, one.condition_id or worn)
    return Known(told, await _load_places(tx))


def _batches(values: Sequence[str]) -> Iterable[Sequence[str]]:
    return (values[start : start + BATCH] for start in range(0, len(values), BATCH))


async def _load_places(tx: Tx) -> dict[int, tuple[int, ...]]:
    rows = await tx.execute(select(categories.c.id, categories.c.above))
    return {row.id: tuple(map(int, row.above.split())) for row in rows}


async def learn_place(tx: Tx, one: Found) -> bool:
    """Keep where an item's category lies, if its page names that; return whether it is news."""
    if one.category_id is None or one.category_above is None:
        return False
    above = " ".join(map(str, one.category_above))
    known = select(categories.c.above).where(categories.c.id == one.category_id)
    if (await tx.execute(known)).scalar() == above:
        return False
    await tx.save(categories, [{"id": one.category_id, "above": above}], ("above",))
    return True


async def find_unfit(tx: Tx, product: Product) -> dict[str, str]:
    """Find the results whose category or condition is known not to fit, each with the reason."""
    setting, at = product.setting, sightings.c
    places = {} if setting.category_id is None else await _load_places(tx)
    outside = [
        category_id
        for category_id, above in places.items()
        if find_other_kind(setting, Traits(category_id=category_id, category_above=above))
    ]
    conditions: list[Any] = [at.category_id.in_(outside)] if outside else []
    if setting.item_conditions:
        conditions.append(at.condition_id.not_in(setting.item_conditions))
    if not conditions:
        return {}
    query = select(at.external_id, at.category_id, at.condition_id).join(results, SAME_ITEM)
    query = query.where(at.product_id == product.id, or_(*conditions))
    rows = (await tx.execute(query)).all()
    known = Known({key: (filed, worn) for key, filed, worn in rows}, places)
    reasons = {
        row.external_id: find_other_kind(setting, known.find(row.external_id)) for row in rows
    }
    return {key: reason for key, reason in reasons.items() if reason is not None}


async def list_unplaced(tx: Tx, product: Product) -> list[int]:
    """List one result of each category of which it is not known whether it fits."""
    wanted, at = product.setting.category_id, sightings.c
    if wanted is None:
        return []
    placed = select(categories.c.id)
    query = select(func.min(results.c.id)).select_from(sightings).join(results, SAME_ITEM)
    query = query.where(
        at.product_id == product.id,
        at.category_id.is_not(None),
        at.category_id != wanted,
        at.category_id.not_in(placed),
    )
    found = await tx.execute(query.group_by(at.category_id).limit(MOST_UNPLACED))
    return list(found.scalars())
