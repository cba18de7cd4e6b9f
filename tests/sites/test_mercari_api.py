"""Mercari's API is asked as its own page asks it, over a real socket."""

import asyncio
import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mimawari.errors import Blocked, Gone, Invalid, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.page import Page
from mimawari.sites.mercari import ApiMarket, Kind, Query, SearchPage, Side, walk
from mimawari.sites.mercari.api import SITE, judge
from tests.sites.asking import PlainHttp

ID = "m12345678901"
SHOPS_ID = "2JVoP4vefPkskNLnvGbb9P"
NOT_ASKED = (
    *("sizeId", "categoryId", "brandId", "sellerId", "itemConditionId", "shippingPayerId"),
    *("shippingFromArea", "shippingMethod", "colorId", "attributes", "itemTypes"),
    *("skuIds", "shopIds", "excludeShippingMethodIds"),
)
NOW = datetime(2026, 9, 2, tzinfo=UTC)


@dataclass
class Api:
    """A little server that keeps what it was asked and answers what it was told."""

    replies: list[tuple[int, Any]] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, str], Any]] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        said = json.loads(body) if body else None
        where = str(request.url)
        self.asked.append((request.method, where, dict(request.headers), said))
        status, reply = self.replies.pop(0)
        content = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
        return Response(content, status)

    @property
    def market(self) -> ApiMarket:
        return ApiMarket(PlainHttp(), self.url + "/", VirtualClock(NOW))


@asynccontextmanager
async def serving(api: Api) -> AsyncIterator[Api]:
    app = Starlette(routes=[Route("/{path:path}", api.answer, methods=["GET", "POST"])])
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    api.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        yield api
    finally:
        server.should_exit = True
        await task


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with serving(Api()) as api:
        yield api


def listing(*ids: str, token: str = "") -> dict[str, Any]:
    """Reply to a search."""
    items = [
        {"id": name, "name": "x", "price": "300", "status": "ITEM_STATUS_ON_SALE", "updated": "1"}
        for name in ids
    ]
    return {"items": items, "meta": {"nextPageToken": token, "numFound": "99999"}}


def ordinary(item_id: str = ID) -> dict[str, Any]:
    return {
        "result": "OK",
        "data": {"id": item_id, "name": "x", "price": 300, "status": "sold_out"},
    }


def product(item_id: str = SHOPS_ID) -> dict[str, Any]:
    return {"name": item_id, "displayName": "x", "price": "300", "productTags": ["sold_out"]}


def claims_of(proof: str) -> dict[str, Any]:
    body = proof.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return found


async def test_a_search_is_asked_for_in_the_words_of_the_sites_own_page(api: Api) -> None:
    api.replies = [(200, listing(ID))]
    await api.market.search_page(Query(keyword="初音ミク フィギュア"))
    ((method, url, headers, said),) = api.asked
    assert (method, url) == ("POST", f"{api.url}/v2/entities:search")
    assert headers["x-platform"] == "web"
    assert headers["content-type"].startswith("application/json")
    assert "application/json" in headers["accept"]
    assert (said["pageSize"], said["pageToken"], said["userId"]) == (120, "", "")
    assert said["serviceFrom"] == "suruga"
    assert said["withAuction"] is True
    assert len(said["searchSessionId"]) == 32
    assert said["searchCondition"] == {
        "keyword": "初音ミク フィギュア",
        "excludeKeyword": "",
        "sort": "SORT_CREATED_TIME",
        "order": "ORDER_DESC",
        "status": ["STATUS_ON_SALE"],
        "priceMin": 0,
        "priceMax": 0,
        "hasCoupon": False,
        **{name: [] for name in NOT_ASKED},
    }


async def test_all_that_a_query_asks_for_is_asked_for(api: Api) -> None:
    api.replies = [(200, listing(ID))]
    query = Query(
        keyword="a",
        side=Side.SOLD,
        exclude="ジャンク",
        category_id=859,
        price_min_yen=300,
        price_max_yen=9_999_999,
        condition_ids=(1, 2),
    )
    await api.market.search_page(query, "v1:3")
    (_, _, _, said) = api.asked[0]
    wanted = said["searchCondition"]
    assert said["pageToken"] == "v1:3"
    assert sorted(wanted["status"]) == ["STATUS_SOLD_OUT", "STATUS_TRADING"]
    assert (wanted["excludeKeyword"], wanted["categoryId"]) == ("ジャンク", [859])
    assert (wanted["priceMin"], wanted["priceMax"]) == (300, 9_999_999)
    assert wanted["itemConditionId"] == [1, 2]


@pytest.mark.parametrize("keyword", ["", '"}{', "a\x00b", "\ud800", "改\n行", "🎴", "x" * 5000])
async def test_a_keyword_of_any_kind_can_be_asked_for(api: Api, keyword: str) -> None:
    api.replies = [(200, listing())]
    page = await api.market.search_page(Query(keyword=keyword, exclude=keyword))
    assert page == SearchPage()
    said = api.asked[0][3]["searchCondition"]
    assert "\x00" not in said["keyword"]
    assert said["keyword"] == said["excludeKeyword"]


async def test_every_request_carries_a_proof_of_its_own(api: Api) -> None:
    api.replies = [(200, listing(ID)), (200, ordinary()), (200, product())]
    market = api.market
    await market.search_page(Query(keyword="a"))
    await market.item(ID)
    await market.item(SHOPS_ID)
    proofs = [headers["dpop"] for _, _, headers, _ in api.asked]
    for (method, url, _, _), proof in zip(api.asked, proofs, strict=True):
        claims = claims_of(proof)
        assert (claims["htm"], claims["htu"]) == (method, url.split("?")[0])
        assert claims["iat"] == int(NOW.timestamp())
    assert len({claims_of(proof)["jti"] for proof in proofs}) == 3
    assert len({proof.split(".")[0] for proof in proofs}) == 1


async def test_a_search_gives_what_the_site_gave(api: Api) -> None:
    api.replies = [(200, listing(ID, SHOPS_ID, token="v1:1"))]
    page = await api.market.search_page(Query(keyword="a"))
    assert [item.id for item in page.items] == [ID, SHOPS_ID]
    assert page.next_token == "v1:1"


async def test_the_shape_of_an_id_chooses_the_route(api: Api) -> None:
    api.replies = [(200, ordinary()), (200, product())]
    assert (await api.market.item(ID)).item.kind is Kind.ORDINARY
    assert (await api.market.item(SHOPS_ID)).item.kind is Kind.SHOPS
    (first, url), (second, shops_url) = ((method, url) for method, url, _, _ in api.asked)
    assert (first, second) == ("GET", "GET")
    assert url == f"{api.url}/items/get?id={ID}&include_auction=true"
    assert shops_url == f"{api.url}/v1/marketplaces/shops/products/{SHOPS_ID}?view=FULL"
    assert "content-type" not in api.asked[0][2]


@pytest.mark.parametrize("item_id", ["", "x", "m1", "../items", f"{ID}&id=m1", f"{ID}\n"])
async def test_an_id_of_no_known_shape_is_never_asked_for(api: Api, item_id: str) -> None:
    with pytest.raises(Invalid, match="no id"):
        await api.market.item(item_id)
    assert api.asked == []


async def test_the_answer_to_another_question_is_not_taken(api: Api) -> None:
    api.replies = [(200, ordinary("m00000000001")), (200, product("2JWDpXc97kLGT6F5i2JLSF"))]
    for item_id in (ID, SHOPS_ID):
        with pytest.raises(Invalid, match="answered with the item"):
            await api.market.item(item_id)


@pytest.mark.parametrize("item_id", [ID, SHOPS_ID])
@pytest.mark.parametrize(
    "reply",
    [
        (404, {"result": "error", "errors": [{"code": "RecordNotFoundException"}]}),
        (404, {"code": 5, "message": "not found"}),
        (404, b""),
        (200, {"result": "error", "errors": [{"code": "RecordNotFoundException"}]}),
    ],
)
async def test_an_item_that_the_site_does_not_know_is_gone(
    api: Api, item_id: str, reply: tuple[int, Any]
) -> None:
    api.replies = [reply]
    with pytest.raises(Gone):
        await api.market.item(item_id)


async def test_a_route_that_is_no_more_does_not_make_every_item_gone(api: Api) -> None:
    api.replies = [(404, b"404 page not found\n"), (404, b"404 page not found\n"), (404, {})]
    for item_id in (ID, SHOPS_ID):
        with pytest.raises(Invalid, match="route"):
            await api.market.item(item_id)
    with pytest.raises(Invalid, match="route"):
        await api.market.search_page(Query(keyword="a"))


async def test_a_request_that_the_site_does_not_take_is_no_block(api: Api) -> None:
    reply = {"result": "error", "errors": [{"code": "InvalidArgument"}]}
    api.replies = [(400, reply), (400, reply)]
    with pytest.raises(Invalid) as caught:
        await api.market.item(ID)
    assert caught.value.page == json.dumps(reply).encode()
    with pytest.raises(Invalid):
        await api.market.search_page(Query(keyword="a"))


async def test_a_proof_that_the_site_does_not_take_is_a_block(api: Api) -> None:
    api.replies = [(401, {"code": 16, "message": "unauthorized: missing auth token"})]
    with pytest.raises(Blocked, match="proof") as caught:
        await api.market.search_page(Query(keyword="a"))
    assert caught.value.site == "mercari"


async def test_an_empty_reply_may_be_a_full_one_later(api: Api) -> None:
    api.replies = [(200, b""), (200, b"")]
    with pytest.raises(Transient, match="empty"):
        await api.market.search_page(Query(keyword="a"))
    with pytest.raises(Transient, match="empty"):
        await api.market.item(ID)


async def test_a_reply_that_is_no_json_is_not_understood_and_kept(api: Api) -> None:
    api.replies = [(200, b"<html>maintenance</html>")]
    with pytest.raises(Invalid) as caught:
        await api.market.search_page(Query(keyword="a"))
    assert caught.value.page == b"<html>maintenance</html>"


@pytest.mark.parametrize("status", [200, 304, 403, 429, 500, 503])
def test_the_judge_leaves_to_the_rules_what_is_the_same_on_all_sites(status: int) -> None:
    page = Page(url="x", status=status, headers={}, body=b"{}", fetched_at=NOW)
    assert judge(page) is None
    assert judge(replace(page, status=404)) is None


def test_the_site_is_bounded() -> None:
    assert (SITE.name, SITE.judge, SITE.most_bytes) == ("mercari", judge, 4 * 1024 * 1024)


async def test_a_walk_over_the_api_goes_on_after_a_bad_page_and_ends_by_itself(api: Api) -> None:
    ids = [f"m{number:011}" for number in range(4)]
    api.replies = [
        (200, listing(ids[0], token="v1:1")),
        (503, b"busy"),
        (200, b"<html>"),
        (200, listing(ids[3], token="")),
    ]
    found = [result async for result in walk(api.market, Query(keyword="a"), 10)]
    assert [result.page is not None for result in found] == [True, False, False, True]
    assert [said["pageToken"] for _, _, _, said in api.asked] == ["", "v1:1", "v1:2", "v1:3"]
