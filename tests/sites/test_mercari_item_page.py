"""What is read from an item's own page on Mercari as a browser has drawn it."""

import pickle

import pytest

from mimawari.errors import Gone, Invalid
from mimawari.sites.mercari import Item, Kind, Status, parse_rendered_item

ID = "m12345678901"
SHOPS_ID = "2JNzBk7RTShAhskwbF99Yt"
# The page's scripts hold every word that the site can say.
SCRIPT = "<script>ページが見つかりませんでした この商品は削除されました 売り切れました</script>"
OTHER = """<li data-testid="item-cell"><a data-testid="thumbnail-link" href="/item/m00000000009">
  <i data-testid="item-tile-price">¥1</i><i data-testid="item-tile-sticker">SOLD</i></a></li>"""


def shown(**more: str) -> str:
    """Draw an item's own page, with recommendations below it."""
    price = more.get("price", "<span>¥</span><span>70,000</span>")
    button = more.get("button", "<button>購入手続きへ</button>")
    return f"""<html><head><meta property="og:image" content="https://static.mercdn.net/x.jpg">
      <title>x</title></head><body>{SCRIPT}<main>{more.get("before", "")}
      <div id="item-info"><h1>{more.get("title", "iPhone15 の画像 500円")}</h1>
      <div data-testid="price">{price}</div><div data-testid="checkout-button">{button}</div>
      <pre data-testid="description">美品です\n売り切れました</pre>
      <a href="/user/profile/900000001?x=1">出品者</a></div>
      <aside><h1>関連</h1><i data-testid="price">¥1</i>{OTHER}</aside></main></body></html>"""


def test_an_items_own_page_is_read() -> None:
    found = parse_rendered_item(shown(), ID)
    assert found.item == Item(
        id=ID,
        kind=Kind.ORDINARY,
        title="iPhone15 の画像 500円",
        status=Status.ON_SALE,
        price_yen=70000,
        seller_id="900000001",
        image_url="https://static.mercdn.net/x.jpg",
    )
    assert found.description == "美品です\n売り切れました"
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_main_part_is_read_wherever_else_the_same_names_stand() -> None:
    before = (
        '<h1>Mercari</h1><i data-testid="price">¥5</i><i data-testid="checkout-button">x</i>'
        '<a href="/user/profile/1">x</a>'
    )
    item = parse_rendered_item(shown(before=before), ID).item
    assert (item.title, item.price_yen, item.status) == (
        "iPhone15 の画像 500円",
        70000,
        Status.ON_SALE,
    )
    assert item.seller_id == "900000001"


@pytest.mark.parametrize(
    ("button", "status"),
    [
        ("<button>購入手続きへ</button>", Status.ON_SALE),
        ("<button disabled>売り切れました</button>", Status.SOLD_OUT),
        ("<button>売り切れました</button>", Status.SOLD_OUT),
        ('<button disabled="">購入手続きへ</button>', Status.SOLD_OUT),
        ('<a aria-disabled="true">SOLD OUT</a>', Status.SOLD_OUT),
        ("<button>公開停止中</button>", Status.STOP),
        ("<button disabled>現在公開停止中です</button>", Status.STOP),
    ],
)
def test_the_button_tells_whether_an_item_is_sold(button: str, status: Status) -> None:
    item = parse_rendered_item(shown(button=button), ID).item
    assert (item.status, item.is_auction) == (status, False)


def test_a_page_of_a_product_of_mercari_shops_is_read() -> None:
    page = (
        shown()
        .replace("item-info", "product-info")
        .replace('"price"', '"product-price"')
        .replace("/user/profile/900000001", "/shops/profile/Z2WV4ko2jDBZgkZmfvhuLL")
    )
    item = parse_rendered_item(page, SHOPS_ID).item
    assert (item.kind, item.price_yen) == (Kind.SHOPS, 70000)
    assert item.seller_id == "Z2WV4ko2jDBZgkZmfvhuLL"


def test_an_auctions_own_page_is_marked() -> None:
    page = shown(price="現在 ¥300", button="<button>入札する</button>")
    item = parse_rendered_item(page, ID).item
    assert (item.is_auction, item.price_yen, item.status) == (True, 300, Status.ON_SALE)


@pytest.mark.parametrize(
    "page",
    [
        "<h1>ページが見つかりませんでした</h1><p>お探しのページはURLが間違っています</p>",
        f"<body>{SCRIPT}<p>この商品は削除されました</p></body>",
        "<main><p>該当する商品は削除されています。</p></main>",
    ],
)
def test_a_page_that_says_that_there_is_no_item_is_of_one_that_is_gone(page: str) -> None:
    with pytest.raises(Gone, match=ID):
        parse_rendered_item(page, ID)


@pytest.mark.parametrize(
    "page",
    [
        *("", "<h1>x</h1>", "<script>ページが見つかりませんでした</script><h1>x</h1>"),
        shown().replace("checkout-button", "other"),
        shown().replace('"price"', '"other"'),
        shown().replace("h1>", "h2>"),
        *(shown(price=price) for price in ("", "¥0", "US$5", "x")),
        *(shown(title=title) for title in ("", " ")),
    ],
)
def test_an_items_page_that_lacks_a_part_is_not_understood(page: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_rendered_item(page, ID)
    assert caught.value.page == page.encode()


def test_an_id_of_no_known_shape_has_no_page() -> None:
    with pytest.raises(Invalid, match="id"):
        parse_rendered_item(shown(), "x")
