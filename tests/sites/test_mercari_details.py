"""What is read from the replies of Mercari's API on one item."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from mimawari.errors import Gone, Invalid
from mimawari.sites.mercari import (
    Detail,
    Item,
    Kind,
    Status,
    parse_item,
    parse_shops_product,
)
from tests.captured import FOLDER, captured

FIXTURES = FOLDER / "mercari"
SHOPS_ID = "2JVoP4vefPkskNLnvGbb9P"


def detail(**changes: Any) -> dict[str, Any]:
    raw = {
        "id": "m12345678901",
        "seller": {"id": 4711, "name": "x"},
        "status": "trading",
        "name": "フィギュア",
        "price": 1200,
        "description": "新品です",
        "thumbnails": ["https://static.mercdn.net/a.jpg"],
        "item_category": {"id": 859},
        "item_condition": {"id": 2},
        "updated": 1788342482,
        "created": 1788341954,
    } | changes
    return {name: value for name, value in raw.items() if value is not ...}


def item_body(**changes: Any) -> bytes:
    return json.dumps({"result": "OK", "data": detail(**changes), "meta": {}}).encode()


def product_body(**changes: Any) -> bytes:
    raw = {
        "name": SHOPS_ID,
        "displayName": "ケース",
        "productTags": [],
        "thumbnail": "https://assets.mercari-shops-static.com/a.png",
        "price": "1280",
        "createTime": "2026-09-02T04:41:17Z",
        "updateTime": "2026-09-02T09:24:57Z",
        "productDetail": {"shop": {"name": "Z2WV4ko2jDBZgkZmfvhuLL"}, "description": "x"},
    } | changes
    return json.dumps({name: value for name, value in raw.items() if value is not ...}).encode()


@captured
def test_a_captured_item_of_2022_is_read_as_it_stands() -> None:
    found = parse_item((FIXTURES / "api" / "test_item_0.json").read_bytes())
    assert found.item == Item(
        id="m12871737078",
        kind=Kind.ORDINARY,
        title="DJ Sharpnel / PPPH!",
        status=Status.SOLD_OUT,
        price_yen=8000,
        seller_id="485869194",
        image_url="https://static.mercdn.net/c!/w=240/thumb/photos/m12871737078_1.jpg?1654847197",
        created_at=datetime(2022, 6, 10, 7, 46, 37, tzinfo=UTC),
        updated_at=datetime(2022, 6, 30, 10, 24, 59, tzinfo=UTC),
        category_id=696,
        category_above=(5, 75),
        condition_id=4,
    )
    assert found.description.startswith("DJ Sharpnel\nPPPH! -Phat")
    assert found.item.path == "/item/m12871737078"


@captured
def test_a_captured_item_of_2026_is_read_as_it_stands() -> None:
    found = parse_item((FIXTURES / "api_2026-09" / "item_detail.json").read_bytes())
    item = found.item
    assert (item.id, item.price_yen, item.status) == ("m87177707015", 70000, Status.ON_SALE)
    assert (item.seller_id, item.category_id, item.condition_id) == ("900000001", 859, 2)
    assert item.category_above == (7, 100)
    assert item.updated_at == datetime(2026, 9, 2, 9, 48, 2, tzinfo=UTC)
    assert not item.is_auction
    assert found.description.startswith("商品説明")


@captured
def test_a_captured_product_of_mercari_shops_is_read_as_it_stands() -> None:
    found = parse_shops_product((FIXTURES / "api_2026-09" / "shops_product.json").read_bytes())
    item = found.item
    assert (item.id, item.kind, item.price_yen) == ("2JWDpXc97kLGT6F5i2JLSF", Kind.SHOPS, 1280)
    assert (item.status, item.seller_id) == (Status.ON_SALE, "Z2WV4ko2jDBZgkZmfvhuLL")
    assert (item.category_id, item.category_above) == (3644, (7, 191, 1208))
    assert item.condition_id == 1
    assert item.created_at == datetime(2026, 9, 2, 4, 41, 17, tzinfo=UTC)
    assert item.title.startswith("◎※ iphone15")
    assert item.path == "/shops/product/2JWDpXc97kLGT6F5i2JLSF"


def test_an_item_may_lack_all_that_is_not_needed() -> None:
    gone = dict.fromkeys(
        ("seller", "thumbnails", "item_category", "item_condition", "updated"), ...
    )
    bare = parse_item(item_body(**gone, description=None, created=None))
    assert bare == Detail(
        item=Item(
            id="m12345678901",
            kind=Kind.ORDINARY,
            title="フィギュア",
            price_yen=1200,
            status=Status.TRADING,
        )
    )
    nulls = parse_item(item_body(**dict.fromkeys(gone), description=None, created=None))
    assert nulls == bare


def test_a_category_that_lies_in_none_is_known_to_be_a_root_only_where_a_page_says_so() -> None:
    assert parse_item(item_body()).item.category_above is None
    root = {"id": 7, "parent_category_id": 7, "root_category_id": 7}
    assert parse_item(item_body(item_category=root)).item.category_above == ()


@pytest.mark.parametrize(
    "changes",
    [
        *({"price": -5}, {"price": None}, {"price": "x"}, {"name": ""}, {"name": None}),
        *({"id": SHOPS_ID}, {"id": "m1"}, {"status": "deleted"}, {"status": None}),
    ],
)
def test_an_item_with_a_wrong_value_is_not_understood(changes: dict[str, Any]) -> None:
    body = item_body(**changes)
    with pytest.raises(Invalid, match="cannot be used") as caught:
        parse_item(body)
    assert caught.value.page == body


def test_a_long_description_is_cut_and_made_safe() -> None:
    assert parse_item(item_body(description="a\x00b")).description == "a\ufffdb"
    assert len(parse_item(item_body(description="x" * 10**6)).description) == 50_000


@pytest.mark.parametrize(
    ("tags", "status"),
    [
        ([], Status.ON_SALE),
        (None, Status.ON_SALE),
        (["new", None], Status.ON_SALE),
        (["sold_out"], Status.SOLD_OUT),
        (["new", "sold_out"], Status.SOLD_OUT),
    ],
)
def test_a_product_is_sold_when_it_is_tagged_so(tags: Any, status: Status) -> None:
    assert parse_shops_product(product_body(productTags=tags)).item.status is status


@pytest.mark.parametrize(
    "changes",
    [
        *({"productTags": ...}, {"productTags": "sold_out"}, {"price": "0"}, {"price": None}),
        *({"name": "m12345678901"}, {"name": 5}, {"displayName": " "}),
    ],
)
def test_a_product_with_a_wrong_value_is_not_understood(changes: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match="cannot be used"):
        parse_shops_product(product_body(**changes))


@pytest.mark.parametrize(
    "inner", [None, ..., [], {"shop": None, "categories": [None], "photos": 5}]
)
def test_a_product_may_lack_its_details(inner: Any) -> None:
    found = parse_shops_product(product_body(productDetail=inner))
    assert (found.item.seller_id, found.item.category_id, found.description) == (None, None, "")
    assert found.item.price_yen == 1280


def test_an_unknown_product_is_gone() -> None:
    body = b'{"code": 5, "message": "not found", "requestId": "x", "details": null}'
    with pytest.raises(Gone, match="not found"):
        parse_shops_product(body)


@pytest.mark.parametrize("price", [9999999, "9999999", None, ..., 0])
def test_an_item_without_a_price_is_marked(price: Any) -> None:
    item = parse_item(item_body(price=price, is_no_price=True)).item
    assert (item.price_yen, item.has_price) == (None, False)
    assert parse_item(item_body(price=9999999)).item.price_yen == 9_999_999


def test_an_auction_is_marked_and_its_price_is_the_bid() -> None:
    auction = {"state": "STATE_ONGOING", "highest_bid": 1200, "total_bids": 3}
    item = parse_item(item_body(auction_info=auction)).item
    assert (item.is_auction, item.price_yen) == (True, 1200)
    assert not parse_item(item_body()).item.is_auction
    assert not parse_item(item_body(auction_info=None)).item.is_auction
