"""What is read from the replies of Mercari's API, captured and made up, good and bad."""

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import Invalid
from mimawari.sites.mercari import (
    Item,
    Kind,
    Status,
    parse_search,
)
from mimawari.sites.mercari.models import MOST_YEN, kind_of
from mimawari.sites.mercari.replies import parse_status

SHOPS_ID = "2JVoP4vefPkskNLnvGbb9P"


def listed(**changes: Any) -> dict[str, Any]:
    """Return an item as a search lists it, with some fields changed; `...` takes one out."""
    item = {
        "id": "m12345678901",
        "sellerId": "4711",
        "buyerId": "",
        "status": "ITEM_STATUS_ON_SALE",
        "name": "フィギュア",
        "price": "1200",
        "created": "1788341954",
        "updated": "1788342482",
        "thumbnails": ["https://static.mercdn.net/thumb/item/webp/m12345678901_1.jpg?1"],
        "itemType": "ITEM_TYPE_MERCARI",
        "itemConditionId": "3",
        "categoryId": "859",
        "isNoPrice": False,
        "auction": None,
        "shop": None,
    } | changes
    return {name: value for name, value in item.items() if value is not ...}


def search(*items: Any, token: Any = "", **more: Any) -> bytes:
    reply = {"meta": {"nextPageToken": token, "numFound": "9"}, "items": list(items)} | more
    return json.dumps({name: value for name, value in reply.items() if value is not ...}).encode()


def one(**changes: Any) -> Item:
    page = parse_search(search(listed(**changes)))
    assert page.refused == ()
    (item,) = page.items
    return item


def refused(**changes: Any) -> str:
    """Return why an item was refused that stands between two good ones."""
    ids = ("m00000000001", "m00000000002")
    body = search(listed(id=ids[0]), listed(**changes), listed(id=ids[1]))
    page = parse_search(body)
    assert tuple(item.id for item in page.items) == ids
    (why,) = page.refused
    return why.reason


@pytest.mark.parametrize(
    ("spelling", "status"),
    [
        (f"{prefix}{status.value.upper()}" if prefix else status.value, status)
        for status in Status
        for prefix in ("", "STATUS_", "ITEM_STATUS_")
    ],
)
def test_a_status_is_read_in_each_of_its_three_spellings(spelling: str, status: Status) -> None:
    assert parse_status(spelling) is status
    assert one(status=spelling).status is status


def test_what_is_traded_and_what_is_sold_out_count_as_sold() -> None:
    assert {status for status in Status if status.is_sold} == {Status.TRADING, Status.SOLD_OUT}


@pytest.mark.parametrize(
    "status",
    ["ITEM_STATUS_UNSPECIFIED", "on sale", "ON_SALE", "item_status_on_sale", "", None, 1, ["stop"]],
)
def test_a_status_of_another_spelling_refuses_the_item(status: Any) -> None:
    assert "status" in refused(status=status)


@pytest.mark.parametrize(
    "price", ["-1", -1, "0", 0, "abc", "", None, ..., True, "1,200", "\uff11\uff12\uff10\uff10"]
)
def test_a_price_that_is_none_refuses_the_item(price: Any) -> None:
    assert "price" in refused(price=price)


@pytest.mark.parametrize(
    "price",
    [
        "12.5",
        12.5,
        "1e3",
        MOST_YEN + 1,
        str(10**30),
        10**30,
        [],
        {},
        " 300",
        "+300",
        "3_00",
        "0x1f",
    ],
)
def test_a_price_of_no_plain_number_refuses_the_item(price: Any) -> None:
    assert "price" in refused(price=price)


@pytest.mark.parametrize("price", ["1200", 1200, 1200.0])
def test_a_price_may_be_a_number_or_text(price: Any) -> None:
    assert one(price=price).price_yen == 1200


@pytest.mark.parametrize("price", ["9999999", 9999999, None, "", ..., "0"])
def test_an_item_without_a_price_is_kept_whatever_number_stands_in_its_place(price: Any) -> None:
    item = one(price=price, isNoPrice=True)
    assert (item.price_yen, item.has_price) == (None, False)


def test_the_highest_price_there_is_is_a_price() -> None:
    assert one(price="9999999").price_yen == 9_999_999


@pytest.mark.parametrize(
    "item_id",
    [
        *("", "m", "m1234567890", "m123456789012", "n12345678901", "m1234567890x", "M12345678901"),
        *(
            "m" + "\uff11" * 11,
            "m12345678901\n",
            " m12345678901",
            "2JVoP4vefPkskNLnvGbb9",
            "x" * 23,
        ),
        *("../../etc/passwd", "2JVoP4vefPkskNLnvGbb9/", 12345678901, None, ..., ["m12345678901"]),
    ],
)
def test_an_id_of_no_known_shape_refuses_the_item(item_id: Any) -> None:
    assert "id" in refused(id=item_id, itemType=...)
    assert kind_of(item_id if isinstance(item_id, str) else "") is None


@pytest.mark.parametrize("title", ["", "   ", "\u3000", None, ..., 5, "あ" * 1001])
def test_an_item_without_a_title_is_refused(title: Any) -> None:
    assert "title" in refused(name=title)


def test_a_title_is_made_safe_and_otherwise_left_as_it_is() -> None:
    assert one(name=" a\x00b\x1b[31m\ud800 <b>の画像 500円</b>\n").title == (
        "a\ufffdb\ufffd[31m\ufffd <b>の画像 500円</b>"
    )


def test_the_shape_of_the_id_tells_the_kind_where_the_type_does_not() -> None:
    for kind in (..., None, "", "ITEM_TYPE_UNSPECIFIED", "ITEM_TYPE_NEW", 3):
        assert one(itemType=kind).kind is Kind.ORDINARY
        assert one(itemType=kind, id=SHOPS_ID).kind is Kind.SHOPS


def test_an_id_that_begins_with_m_may_be_that_of_a_product() -> None:
    item = one(id="mYBVT6kM4D6Hyn8pbQKZrn", itemType="ITEM_TYPE_BEYOND")
    assert (item.kind, item.path) == (Kind.SHOPS, "/shops/product/mYBVT6kM4D6Hyn8pbQKZrn")


def test_an_item_whose_type_contradicts_its_id_is_refused() -> None:
    assert "type" in refused(itemType="ITEM_TYPE_BEYOND")
    assert "type" in refused(id=SHOPS_ID, itemType="ITEM_TYPE_MERCARI")


def test_a_product_is_sold_by_its_shop_and_not_by_seller_zero() -> None:
    shops = {"id": SHOPS_ID, "sellerId": "0", "itemType": "ITEM_TYPE_BEYOND"}
    assert one(**shops, shop={"id": "2JSYvWiZp28KSWmERj2nxL"}).seller_id == "2JSYvWiZp28KSWmERj2nxL"
    assert one(**shops).seller_id is None
    assert one(**shops, shop=...).seller_id is None


@pytest.mark.parametrize("seller", ["0", "", None, ..., 0, "a b", "<script>", [], "x" * 41, True])
def test_an_item_of_nobody_is_kept(seller: Any) -> None:
    assert one(sellerId=seller).seller_id is None


def test_an_auction_is_marked_and_its_price_is_the_bid() -> None:
    auction = {
        "id": "",
        "bidDeadline": "2026-09-02T11:39:00Z",
        "totalBid": "20",
        "highestBid": "62",
    }
    assert one(price="62000", auction=auction).is_auction
    assert one(price="62000", auction=auction).price_yen == 62000
    nothing: tuple[Any, ...] = (None, ..., {}, [], "")
    assert not any(one(auction=none).is_auction for none in nothing)


def test_the_image_is_the_thumbnail_or_else_the_photo() -> None:
    photo = "https://static.mercdn.net/item/detail/webp/photos/m1_1.jpg"
    assert one(thumbnails=[], photos=[{"uri": photo}]).image_url == photo
    assert one(thumbnails=None, photos=[None, {}, {"uri": photo}]).image_url == photo
    assert one(thumbnails=[None, photo]).image_url == photo


@pytest.mark.parametrize(
    "images", [[], None, ..., "x", [""], [5], ["javascript:alert(1)"], ["//x/y"], ['https://x/"']]
)
def test_an_item_without_an_image_is_kept(images: Any) -> None:
    assert one(thumbnails=images).image_url is None


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("1788341954", datetime(2026, 9, 2, 9, 39, 14, tzinfo=UTC)),
        (1788341954, datetime(2026, 9, 2, 9, 39, 14, tzinfo=UTC)),
        ("2026-09-02T09:39:14Z", datetime(2026, 9, 2, 9, 39, 14, tzinfo=UTC)),
        ("2026-09-02T18:39:14.5+09:00", datetime(2026, 9, 2, 9, 39, 14, 500_000, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_seconds_and_in_iso_8601(said: Any, moment: datetime) -> None:
    assert one(created=said).created_at == moment
    assert one(updated=said).updated_at == moment


@pytest.mark.parametrize(
    "said",
    [
        *("", "0", 0, "-5", None, ..., "soon", True, [], 1e300, "9" * 18, "2026-09-02T09:39:14"),
        *("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"),
    ],
)
def test_a_time_that_is_none_is_not_known(said: Any) -> None:
    assert one(created=said).created_at is None
    assert one(updated=said).updated_at is None


@pytest.mark.parametrize("wrong", ["0", "-3", "", None, ..., "x", 2**31, [], 1.5])
def test_a_category_or_a_condition_that_is_none_is_not_known(wrong: Any) -> None:
    item = one(categoryId=wrong, itemConditionId=wrong)
    assert (item.category_id, item.condition_id) == (None, None)


def test_unknown_fields_change_nothing() -> None:
    assert one(nested={"a": [1, {"b": None}]}, hasCoupon=True) == one()


def test_an_item_with_nothing_but_what_is_needed_is_read() -> None:
    bare = {"id": "m12345678901", "name": "x", "price": "300", "status": "ITEM_STATUS_TRADING"}
    (item,) = parse_search(search(bare)).items
    assert item == Item(
        id="m12345678901", kind=Kind.ORDINARY, title="x", price_yen=300, status=Status.TRADING
    )


@pytest.mark.parametrize("raw", [None, 5, "m12345678901", [], {}])
def test_what_is_no_item_is_refused_and_not_the_page(raw: Any) -> None:
    page = parse_search(search(listed(), raw))
    assert len(page.items) == 1
    assert [why.id for why in page.refused] == ["?"]


def test_an_item_listed_twice_is_one() -> None:
    page = parse_search(search(listed(), listed(price="5"), listed(price="abc")))
    assert [item.price_yen for item in page.items] == [1200]
    assert page.refused == ()


@pytest.mark.parametrize("items", [[], None])
@pytest.mark.parametrize("token", ["", None, ...])
def test_an_empty_list_is_an_empty_page(items: Any, token: Any) -> None:
    meta = {"numFound": "150"} | ({} if token is ... else {"nextPageToken": token})
    page = parse_search(json.dumps({"items": items, "meta": meta}).encode())
    assert (page.items, page.refused, page.next_token, page.is_empty) == ((), (), "", True)


@pytest.mark.parametrize("token", [None, 5, {}])
def test_a_list_that_does_not_say_whether_it_goes_on_is_not_understood(token: Any) -> None:
    with pytest.raises(Invalid, match="another page"):
        parse_search(search(listed(), token=token))


def test_a_page_of_which_most_cannot_be_read_is_not_understood_and_is_kept() -> None:
    body = search(listed(), *(listed(id=f"m{number:011}", price="?") for number in range(2)))
    with pytest.raises(Invalid, match="2 of 3 items could not be read") as caught:
        parse_search(body)
    assert caught.value.page == body


@pytest.mark.parametrize("field", ["updated", "thumbnails"])
def test_a_long_page_on_which_nearly_all_lack_a_field_is_not_understood(field: str) -> None:
    items = [listed(id=f"m{number:011}", **{field: None}) for number in range(30)]
    with pytest.raises(Invalid, match="is filled in 0 of 30"):
        parse_search(search(*items))
    assert len(parse_search(search(*items[:3])).items) == 3


def test_a_list_without_end_is_not_read() -> None:
    with pytest.raises(Invalid, match="more than 1000 items"):
        parse_search(search(*[{}] * 1001))


def test_numbers_of_absurd_length_refuse_the_item_they_stand_in() -> None:
    for digits in ("1" + "0" * 30, "9" * 5000, "-" + "9" * 5000):
        body = search(listed(), listed(id="m00000000001", price=0)).replace(
            b'"price": 0', b'"price": ' + digits.encode()
        )
        page = parse_search(body)
        assert len(page.items) == 1
        assert "price" in page.refused[0].reason


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_a_reply_with_what_is_no_number_is_no_json(word: str) -> None:
    with pytest.raises(Invalid, match=f"{word} is no number"):
        parse_search(search(listed(x=5)).replace(b'"x": 5', f'"x": {word}'.encode()))


def test_a_reply_may_be_in_utf_16_as_json_allows() -> None:
    body = search(listed()).decode().encode("utf-16")
    assert parse_search(body).items == (one(),)


def test_what_is_read_and_what_is_refused_can_be_passed_between_processes() -> None:
    page = parse_search(search(listed(), listed(id="m00000000001", price=0)))
    assert pickle.loads(pickle.dumps(page)) == page
    with pytest.raises(Invalid) as caught:
        parse_search(b"{}")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.page) == (str(caught.value), b"{}")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(sorted(listed())), JSON, max_size=4))
def test_no_value_of_any_field_raises_anything_but_our_errors(changes: dict[str, Any]) -> None:
    body = search(listed(id="m00000000001"), listed(**changes)).replace(b"NaN", b"1")
    body = body.replace(b"-Infinity", b"1").replace(b"Infinity", b"1")
    page = parse_search(body)
    for item in page.items:
        assert kind_of(item.id) is item.kind
        assert item.title == item.title.strip() != ""
        assert item.price_yen is None or 0 < item.price_yen <= MOST_YEN
        assert item.created_at is None or item.created_at.tzinfo is UTC
    assert {item.id for item in page.items} >= {"m00000000001"}
