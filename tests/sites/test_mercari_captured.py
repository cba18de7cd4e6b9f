"""Captured pages of searches by Mercari's API are read as they stand."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mimawari.sites.mercari import Item, Kind, Status, parse_search
from tests.captured import FOLDER, captured

FIXTURES = FOLDER / "mercari"
SEARCHES = sorted(FIXTURES.glob("api*/*search*.json"))


def as_item(raw: dict[str, Any]) -> Item:
    """Read a captured item of a search, knowing that it is a good one."""
    is_shops = raw["itemType"] == "ITEM_TYPE_BEYOND"
    has_price = not raw.get("isNoPrice", False)
    return Item(
        id=raw["id"],
        kind=Kind.SHOPS if is_shops else Kind.ORDINARY,
        title=raw["name"].strip(),
        status=Status(raw["status"].removeprefix("ITEM_STATUS_").lower()),
        price_yen=int(raw["price"]) if has_price else None,
        is_auction=raw.get("auction") is not None,
        seller_id=raw["shop"]["id"] if is_shops else raw["sellerId"],
        image_url=raw["thumbnails"][0],
        created_at=datetime.fromtimestamp(int(raw["created"]), UTC),
        updated_at=datetime.fromtimestamp(int(raw["updated"]), UTC),
        category_id=int(raw["categoryId"]) if "categoryId" in raw else None,
        condition_id=int(raw["itemConditionId"]),
    )


@captured
@pytest.mark.parametrize("path", SEARCHES, ids=lambda path: path.stem)
def test_every_item_of_a_captured_search_is_read_as_it_stands(path: Path) -> None:
    body = path.read_bytes()
    raw = json.loads(body)
    page = parse_search(body)
    assert page.refused == ()
    assert page.items == tuple(map(as_item, raw["items"]))
    assert page.next_token == raw["meta"]["nextPageToken"]


@captured
def test_the_captured_searches_hold_what_they_are_known_to_hold() -> None:
    pages = {path.stem: parse_search(path.read_bytes()) for path in SEARCHES}
    counts = {name: len(page.items) for name, page in pages.items()}
    assert counts["test_search_fetch_next_page_0"] == 119
    assert counts["test_search_fetch_next_page_1"] == 24
    assert counts["test_search_filter_by_status_on_sale_0"] == 116
    assert pages["test_search_fetch_next_page_0"].next_token == "v1:1"
    assert pages["test_search_fetch_next_page_1"].next_token == ""
    sold = [item for item in pages["test_search_fetch_next_page_0"].items if item.status.is_sold]
    assert len(sold) == 70


@captured
def test_a_captured_item_without_a_price_is_kept_and_marked() -> None:
    page = parse_search((FIXTURES / "api" / "test_search_no_price_item_0.json").read_bytes())
    (item,) = page.items
    assert (item.id, item.price_yen, item.has_price) == ("m92358406176", None, False)
