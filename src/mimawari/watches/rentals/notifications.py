"""What people may be told of properties: new ones, rents that moved, what is off the market."""

from collections.abc import Mapping, Sequence
from typing import Any

from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import Facts, Telling, tell
from mimawari.watches.rentals.models import Kind

FELL, ROSE, NEW, ENDED = (
    "rentals.rent_fell",
    "rentals.rent_rose",
    "rentals.new",
    "rentals.ended",
)
MOST_NAMED = 3
"""So many new properties of one look are named; of the others their number is told."""


def tell_changes(
    tx: Tx, told: Sequence[Mapping[str, Any]], rows: Mapping[str, Mapping[str, Any]]
) -> None:
    """Tell what people wait for of the changes of one look."""
    new = [rows[change["property_id"]] for change in told if change["kind"] == Kind.NEW]
    for change in told:
        before, after = change["old_value"], change["new_value"]
        if change["kind"] == Kind.RENT and before and after:
            row = rows[change["property_id"]]
            facts = {**_name(row), "before_yen": int(before), "after_yen": int(after)}
            kind = FELL if int(after) < int(before) else ROSE
            tell(tx, f"rentals:{change['property_id']}", kind, facts)
    if new:
        some = [_seen(row) for row in new[:MOST_NAMED]]
        tell(tx, "rentals:new", NEW, {"count": len(new), "some": some})


def tell_ended(tx: Tx, rows: Sequence[Mapping[str, Any]]) -> None:
    """Tell that properties are off the market."""
    for row in rows:
        tell(tx, f"rentals:{row['property_id']}", ENDED, _name(row))


def _name(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row["building_name"] or row["title"] or row["property_id"]
    return {"property_id": row["property_id"], "name": name, "url": row["url"]}


def _seen(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**_name(row), "rent_yen": row["rent_yen"], "layout": row["layout"]}


def _rent(facts: Facts, language: str) -> str:
    before, after = facts["before_yen"], facts["after_yen"]
    if language == "ja":
        return f"{facts['name']}: 家賃 {before:,}円 → {after:,}円"
    return f"{facts['name']}: rent ¥{before:,} → ¥{after:,}"


def _new(facts: Facts, language: str) -> str:
    some = [_word(one, language) for one in facts["some"]]
    more = facts["count"] - len(some)
    if language == "ja":
        return f"新着{facts['count']}件: {'、'.join(some)}{f' ほか{more}件' if more else ''}"
    return f"{facts['count']} new: {', '.join(some)}{f' and {more} more' if more else ''}"


def _word(one: Facts, language: str) -> str:
    rent = one["rent_yen"]
    yen = "" if rent is None else f" {rent:,}円" if language == "ja" else f" ¥{rent:,}"
    return f"{one['name']}{yen}{' ' + one['layout'] if one['layout'] else ''}"


def _ended(facts: Facts, language: str) -> str:
    return f"{facts['name']}: {'掲載終了' if language == 'ja' else 'off the market'}"


def _path(facts: Facts) -> str:
    return f"/rentals/{facts['property_id']}"


def _list_path(_facts: Facts) -> str:
    return "/rentals/list"


TELLINGS = (
    Telling(kind=FELL, ja="家賃の値下げ", en="rent falls", line=_rent, path=_path),
    Telling(kind=ROSE, ja="家賃の値上げ", en="rent rises", line=_rent, path=_path),
    Telling(kind=NEW, ja="新着物件", en="new properties", line=_new, path=_list_path),
    Telling(kind=ENDED, ja="掲載終了", en="property off the market", line=_ended, path=_path),
)
