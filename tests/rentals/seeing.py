"""Properties as the tests make them up, kept as the watch keeps them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from mimawari.store.sql import SqlStore
from mimawari.watches.rentals import sync
from mimawari.watches.rentals.models import Seen, Source
from mimawari.watches.rentals.sync import Kept, Look
from tests.rentals.scene import ADDRESS

TOKYO = ZoneInfo("Asia/Tokyo")
USUAL: dict[str, Any] = {
    "building_name": "メゾン汐見",
    "rent_yen": 72_000,
    "fee_yen": 3000,
    "deposit_yen": 72_000,
    "key_money_yen": 0,
    "layout": "1K",
    "area_m2": 25.5,
    "floor": 2,
    "address": "東京都新宿区",
}


def page_of(property_id: str) -> str:
    """Name the address of a property's own page."""
    return f"{ADDRESS}/rent/detail/{property_id}/"


def on_list(property_id: str, **given: Any) -> Seen:
    """Make up a room on a list."""
    return _seen(property_id, Source.LIST, given)


def on_page(property_id: str, **given: Any) -> Seen:
    """Make up a property's own page."""
    shown = {"title": "メゾン汐見 (2階/1K)", "images": '["a.jpg"]', **given}
    return _seen(property_id, Source.DETAIL, shown)


def _seen(property_id: str, source: Source, given: dict[str, Any]) -> Seen:
    url = page_of(property_id)
    return Seen(property_id=property_id, url=url, source=source, **{**USUAL, **given})


async def keep(store: SqlStore, at: datetime, *seen: Seen) -> Kept:
    """Keep what was seen."""
    async with store.edit() as tx:
        return await sync.keep_seen(tx, seen, Look(job_id="job", at=at, zone=TOKYO))


async def keep_gone(store: SqlStore, at: datetime, property_ids: Sequence[str]) -> None:
    """Keep that pages are gone."""
    for property_id in property_ids:
        async with store.edit() as tx:
            look = Look(job_id="job", at=at, zone=TOKYO)
            await sync.mark_gone(tx, property_id, f"http://rentals.test/{property_id}/", look)
