"""What the simulated market's API promises: the real shapes, the real refusals, the truth."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.lives import Kind, Status
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from tests.captured import FOLDER, read_captured
from tests.sim.ground import Prover, serve
from tests.sim.market_ground import ITEM, PRODUCT, SEARCH, Asking

FIXTURES = FOLDER / "mercari"
ON_SALE = ["STATUS_ON_SALE"]
SOLD = ["STATUS_SOLD_OUT", "STATUS_TRADING"]


def captured(name: str) -> Any:
    """Read a reply of the real API, where there are any."""
    return read_captured(FIXTURES / name)


def shape(value: Any) -> Any:
    """Return the keys of an object with the kinds of its values."""
    kinds = {name: type(inner) for name, inner in value.items() if inner is not None}
    return {name: kinds.get(name) for name in value}


def same_shape(ours: Any, theirs: Any, *, without: frozenset[str] = frozenset()) -> bool:
    mine, real = shape(ours), shape(theirs)
    both = {name for name in real.keys() - without if mine.get(name) and real[name]}
    return mine.keys() - without == real.keys() - without and all(
        mine[name] == real[name] for name in both
    )


@pytest.mark.parametrize("status", [ON_SALE, SOLD, [], ["STATUS_TRADING"]])
@pytest.mark.parametrize("size", [120, 50, 10])
async def test_a_walk_gives_every_item_of_the_truth_once(
    api: Asking, status: list[str], size: int
) -> None:
    keyword = FRANCHISES[4].keyword
    pages = await api.walk(size, keyword=keyword, status=status)
    found = [entry["id"] for page in pages for entry in page]
    names = [name.removeprefix("STATUS_").lower() for name in status]
    expected = [
        entry["id"]
        for entry in api.market.truth({"view": "items", "keyword": keyword})["items"]
        if not names or entry["status"] in names
    ]
    assert found == expected
    assert all(len(page) <= size for page in pages)


async def test_some_pages_are_short_and_not_the_last(api: Asking) -> None:
    pages = await api.walk(status=[])
    assert len(pages) > 5
    lengths = {len(page) for page in pages[:-1]}
    assert lengths <= {118, 119, 120}
    assert len(lengths) > 1


async def test_the_number_of_hits_is_no_total_and_changes_with_the_sort(api: Asking) -> None:
    wrong, sorts = 0, set()
    for one in FRANCHISES:
        total = sum(len(page) for page in await api.walk(keyword=one.keyword, status=SOLD))
        said = (await api.search(keyword=one.keyword, status=SOLD))["meta"]["numFound"]
        wrong += int(said) != total
    for sort in ("SORT_CREATED_TIME", "SORT_PRICE", "SORT_SCORE", "SORT_NUM_LIKES"):
        sorts.add((await api.search(sort=sort, status=SOLD))["meta"]["numFound"])
    assert wrong > len(FRANCHISES) / 2
    assert len(sorts) > 1
    assert int((await api.search(keyword="", status=[]))["meta"]["numFound"]) <= 15_000


async def test_some_searches_name_a_next_page_that_is_empty(api: Asking) -> None:
    last: Counter[str] = Counter()
    for one in FRANCHISES:
        token = ""
        while True:
            reply = await api.search(token, keyword=one.keyword, status=ON_SALE)
            token = reply["meta"]["nextPageToken"]
            if not token or not reply["items"]:
                last["empty list" if not reply["items"] else "no token"] += 1
                break
    assert set(last) == {"empty list", "no token"}


async def test_a_search_that_finds_nothing_is_an_empty_list(api: Asking) -> None:
    reply = await api.search(keyword="そのような物はない")
    assert reply["items"] == []
    assert reply["meta"]["nextPageToken"] == ""
    assert reply["meta"]["numFound"] == "0"
    assert (await api.search("v1:999999"))["items"] == []


async def test_filters_narrow_a_search(api: Asking) -> None:
    pages = await api.walk(priceMin=1000, priceMax="2000", categoryId=[5121], status=ON_SALE)
    found = [entry for page in pages for entry in page]
    assert found
    assert all(1000 <= int(entry["price"]) <= 2000 for entry in found)
    assert {entry["categoryId"] for entry in found} == {"5121"}
    pages = await api.walk(categoryId=["5000"], itemConditionId=[2, "4"], status=ON_SALE)
    assert {entry["itemConditionId"] for page in pages for entry in page} == {"2", "4"}
    word = "匿名配送"
    pages = await api.walk(excludeKeyword=word, status=ON_SALE)
    assert not any(word in entry["name"] for page in pages for entry in page)
    prices = [int(entry["price"]) for entry in (await api.search(sort="SORT_PRICE"))["items"]]
    assert prices == sorted(prices, reverse=True)


async def test_a_reply_has_the_keys_and_kinds_of_a_real_one(api: Asking) -> None:
    real = captured("api_2026-09/search_page.json")
    reply = await api.search(status=[])
    assert same_shape(reply, real)
    assert same_shape(reply["meta"], real["meta"])
    assert reply["searchCondition"].keys() == real["searchCondition"].keys()
    for entry in reply["items"]:
        is_shop = entry["itemType"] == "ITEM_TYPE_BEYOND"
        assert same_shape(entry, real["items"][1 if is_shop else 0])


async def test_an_entry_tells_the_truth_in_strings(api: Asking) -> None:
    pages = await api.walk(status=[])
    for entry in (entry for page in pages for entry in page):
        item = api.market.items()[entry["id"]]
        goods = item.goods
        assert entry["status"] == f"ITEM_STATUS_{item.status.upper()}"
        assert entry["name"] == goods.title
        assert entry["price"] == str(item.price_yen)
        assert entry["created"] == str(goods.created)
        assert entry["updated"] == str(item.updated)
        assert entry["isNoPrice"] is (goods.kind is Kind.NO_PRICE)
        assert (entry["sellerId"] == "0") is (goods.kind is Kind.SHOPS)
        assert (entry["auction"] is not None) is (goods.kind is Kind.AUCTION)
        assert entry["thumbnails"][0].startswith(str(api.http.base_url))
    kinds = {api.market.items()[entry["id"]].goods.kind for page in pages for entry in page}
    assert kinds == set(Kind)


async def test_an_auction_shows_its_bid(api: Asking) -> None:
    pages = await api.walk(status=ON_SALE)
    auctions = [entry for page in pages for entry in page if entry["auction"]]
    assert any(entry["auction"]["totalBid"] != "0" for entry in auctions)
    for entry in auctions:
        assert entry["auction"]["highestBid"] == entry["price"]
        assert entry["auction"]["bidDeadline"].endswith("Z")
        detail = (await api.get(ITEM, f"?id={entry['id']}")).json()["data"]["auction_info"]
        assert str(detail["highest_bid"]) == entry["price"]
        assert str(detail["total_bids"]) == entry["auction"]["totalBid"]


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        "x",
        {},
        {"searchCondition": None},
        {"searchCondition": []},
        {"searchCondition": {}, "pageSize": 121},
        {"searchCondition": {}, "pageSize": 0},
        {"searchCondition": {}, "pageSize": "120"},
        {"searchCondition": {}, "pageSize": True},
        {"searchCondition": {}, "pageToken": "v1:"},
        {"searchCondition": {}, "pageToken": "v2:1"},
        {"searchCondition": {}, "pageToken": "v1:-1"},
        {"searchCondition": {}, "pageToken": "v1:" + "9" * 5000},
        {"searchCondition": {}, "pageToken": "v1:\uff11"},
        {"searchCondition": {}, "pageToken": 1},
        {"searchCondition": {"keyword": 5}},
        {"searchCondition": {"status": ["on_sale"]}},
        {"searchCondition": {"status": ["ITEM_STATUS_ON_SALE"]}},
        {"searchCondition": {"status": "STATUS_ON_SALE"}},
        {"searchCondition": {"status": [{}]}},
        {"searchCondition": {"sort": "created_time"}},
        {"searchCondition": {"sort": []}},
        {"searchCondition": {"order": "DESC"}},
        {"searchCondition": {"priceMin": -1}},
        {"searchCondition": {"priceMax": "many"}},
        {"searchCondition": {"priceMax": 1.5}},
        {"searchCondition": {"categoryId": 5}},
        {"searchCondition": {"categoryId": ["x"]}},
        {"searchCondition": {"itemConditionId": 1}},
    ],
)
async def test_a_search_that_makes_no_sense_is_a_bad_request(api: Asking, body: Any) -> None:
    reply = await api.post(body)
    assert reply.status_code == 400
    assert reply.json()["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b'{"a":'])
async def test_a_body_that_is_no_json_is_a_bad_request(api: Asking, body: bytes) -> None:
    headers = api.prover.headers("POST", SEARCH)
    reply = await api.http.post(SEARCH, content=body, headers=headers)
    assert reply.status_code == 400


async def test_half_a_letter_in_a_search_harms_nobody(api: Asking) -> None:
    headers = api.prover.headers("POST", SEARCH)
    body = (
        rb'{"searchCondition": {"keyword": "\ud800\u0000", "x": NaN, "excludeKeyword": "\udfff"}}'
    )
    reply = await api.http.post(SEARCH, content=body, headers=headers)
    assert (reply.status_code, reply.json()["items"]) == (200, [])


async def test_a_search_must_be_posted(api: Asking) -> None:
    assert (await api.get(SEARCH)).status_code == 405


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        (Kind.ORDINARY, Status.ON_SALE),
        (Kind.ORDINARY, Status.TRADING),
        (Kind.ORDINARY, Status.SOLD_OUT),
        (Kind.ORDINARY, Status.STOP),
        (Kind.NO_PRICE, Status.ON_SALE),
        (Kind.AUCTION, Status.ON_SALE),
        (Kind.AUCTION, Status.SOLD_OUT),
    ],
)
async def test_an_items_own_reply_tells_the_truth_in_numbers(
    api: Asking, kind: Kind, status: Status
) -> None:
    item = api.market.items()[api.one(kind, status)]
    reply = (await api.get(ITEM, f"?id={item.goods.id}")).json()
    assert reply["result"] == "OK"
    found = reply["data"]
    assert (found["id"], found["name"]) == (item.goods.id, item.goods.title)
    assert (found["status"], found["price"]) == (status.value, item.price_yen)
    assert (found["created"], found["updated"]) == (item.goods.created, item.updated)
    real = captured("api_2026-09/item_detail.json")
    assert same_shape(reply, real)
    without = frozenset({"item_brand", "auction_info"})
    assert same_shape(found, real["data"], without=without)
    for name in ("seller", "item_category", "item_condition", "shipping_class"):
        assert same_shape(found[name], real["data"][name]), name


@pytest.mark.parametrize("status", [Status.ON_SALE, Status.SOLD_OUT])
async def test_a_shops_product_tells_the_truth(api: Asking, status: Status) -> None:
    item = api.market.items()[api.one(Kind.SHOPS, status)]
    reply = (await api.get(PRODUCT + item.goods.id, "?view=FULL")).json()
    assert (reply["name"], reply["displayName"]) == (item.goods.id, item.goods.title)
    assert reply["price"] == str(item.price_yen)
    assert ("sold_out" in reply["productTags"]) is (status is Status.SOLD_OUT)
    real = captured("api_2026-09/shops_product.json")
    assert same_shape(reply, real)
    assert same_shape(reply["productDetail"], real["productDetail"])
    for name in ("shop", "productStats", "shippingPayer"):
        assert same_shape(reply["productDetail"][name], real["productDetail"][name]), name


@pytest.mark.parametrize("item_id", ["m00000000000", "m99999999999"])
async def test_an_unknown_item_is_not_found_in_the_real_words(api: Asking, item_id: str) -> None:
    reply = await api.get(ITEM, f"?id={item_id}")
    assert reply.status_code == 404
    assert reply.json()["errors"][0]["code"] == "RecordNotFoundException"
    assert reply.json() == captured("api/test_item_not_found_0.json")


async def test_a_removed_item_is_not_found(api: Asking) -> None:
    assert (await api.get(ITEM, f"?id={api.one(Kind.ORDINARY, Status.REMOVED)}")).status_code == 404


@pytest.mark.parametrize("item_id", ["", "m1", "x", "m1234567890\uff11", "%00", "m123456789012"])
async def test_what_is_no_items_id_is_a_bad_request(api: Asking, item_id: str) -> None:
    assert (await api.get(ITEM, f"?id={item_id}")).status_code == 400


async def test_a_shops_id_is_no_items_id_and_an_items_id_no_shops_id(api: Asking) -> None:
    shops, item = api.one(Kind.SHOPS), api.one(Kind.ORDINARY)
    assert (await api.get(ITEM, f"?id={shops}")).status_code == 400
    assert (await api.get(PRODUCT + item)).status_code == 404
    assert (await api.get(PRODUCT + "2J" + "x" * 20)).status_code == 404


async def test_the_api_follows_the_clock() -> None:
    clock = VirtualClock()
    site = MarketSite(clock, 1)
    async with serve(World(clock, (site,), 1)) as http:
        prover = Prover(http.base_url.netloc.decode(), clock.now())
        asking = Asking(http, prover, site.market)
        first = await asking.search(status=ON_SALE)
        assert await asking.search(status=ON_SALE) == first
        await clock.advance(timedelta(hours=12))
        assert (await asking.get(ITEM, "?id=m1")).status_code == 401
        prover.now = clock.now()
        assert (await asking.search(status=ON_SALE))["items"] != first["items"]
