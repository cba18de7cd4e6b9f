"""What is read from Mercari's pages as a browser has drawn them, captured and made up."""

import html
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import Invalid
from mimawari.sites.mercari import Item, Kind, Status, parse_rendered
from tests.captured import FOLDER, captured

FIXTURES = FOLDER / "mercari" / "html"
ID = "m12345678901"
SHOPS_ID = "2JNzBk7RTShAhskwbF99Yt"
SKELETON = '<li data-testid="item-cell"><div class="merSkeleton"></div></li>'
# The page's scripts hold every word that the site can say.
SCRIPT = '<script>{"noItems":"出品された商品がありません","soldOut":"売り切れました"}</script>'


def old(title: str, price: str = "900円", *, href: str = f"/item/{ID}", mark: str = "") -> str:
    """Draw a cell of the old layout."""
    label = html.escape(f"{title}の画像 {mark}{price}")
    sticker = f'<div data-testid="thumbnail-sticker" aria-label="{mark.strip()}"></div>'
    return f"""<li data-testid="item-cell"><div><a href="{href}" data-testid="thumbnail-link">
      <div class="merItemThumbnail fluid__a6f874a2" role="img" aria-label="{label}">
        <figure><div role="img" aria-label="{html.escape(title)}のサムネイル"><picture>
          <img alt="{html.escape(title)}のサムネイル" src="https://static.mercdn.net/a.jpg?1">
        </picture></div>{sticker if mark else ""}</figure></div></a></div></li>"""


def new(title: str, price: str = "900", *, href: str = f"/item/{ID}", **more: Any) -> str:
    """Draw a cell of the new layout."""
    name = f'<p data-testid="thumbnail-item-name">{html.escape(title)}</p>'
    sold = '<svg data-testid="item-tile-sticker"><text>SOLD</text></svg>'
    is_sold = more.get("is_sold", False)
    alt = f"{html.escape(title)}のサムネイル{' 売り切れ' if is_sold else ''}"
    return f"""<li data-testid="item-cell"><div><a href="{href}" data-testid="thumbnail-link">
      <span><picture><img alt="{alt}" src="https://static.mercdn.net/b.jpg"></picture>
      {sold if is_sold else ""}<div><span data-testid="item-tile-price"><span>
      <span>{more.get("sign", "¥")}</span><span>{price}</span></span></span></div></span>
      {name if more.get("has_name", True) else ""}</a></div></li>"""


def grid(*cells: str, after: str = "") -> str:
    inside = f'<div id="item-grid" data-testid="search-item-grid"><ul>{"".join(cells)}</ul></div>'
    return f"<html><body>{SCRIPT}{inside}{after}</body></html>"


def only(page: str | bytes) -> Item:
    found = parse_rendered(page)
    assert found.refused == ()
    (item,) = found.items
    return item


@captured
def test_the_captured_page_of_the_old_layout_is_read_right() -> None:
    body = (FIXTURES / "search_old_layout_2026-03.html").read_bytes()
    assert body.count(b'data-testid="item-cell"') == 120
    page = parse_rendered(body)
    assert page.refused == ()
    assert page.next_token == "v1:1"
    assert [(item.id, item.price_yen) for item in page.items] == [
        ("m51196268874", 900),
        ("m51019419151", 800),
        ("m38314907458", 500),
        ("m60452773595", 450),
        ("m67529422667", 1000),
        (SHOPS_ID, 6820),
        ("m70818110195", 1299),
        ("m33589700207", 500),
        ("m86523658580", 880),
        ("m54733582112", 333),
        ("m17411255639", 999),
        ("m83499464804", 899),
    ]
    assert [item.id for item in page.items if item.status.is_sold] == [SHOPS_ID]
    assert [item.id for item in page.items if item.kind is Kind.SHOPS] == [SHOPS_ID]
    assert page.items[0].title == (
        "あの花が咲く丘で、君とまた出会えたら & 世界は「」で沈んでいく\u30002冊セット"
    )
    assert page.items[0].image_url == (
        "https://static.mercdn.net/thumb/item/webp/m51196268874_1.jpg?1774590376"
    )
    assert page.items[5].title == (
        "Max Factory 1/7スケール あの日見た花の名前を僕達はまだ知らない 本間芽衣子(メンマ/水着)"
    )
    assert not any(item.is_auction for item in page.items)


@captured
def test_the_captured_cells_of_the_new_layout_are_read_right() -> None:
    page = parse_rendered((FIXTURES / "search_new_layout_2026-10.html").read_bytes())
    assert page.refused == ()
    assert page.next_token == ""
    assert page.items == (
        Item(
            id="m37885764030",
            kind=Kind.ORDINARY,
            title="美少女フィギュア 15点セット まとめ売り",
            status=Status.ON_SALE,
            price_yen=16250,
            image_url="https://static.mercdn.net/thumb/item/webp/m37885764030_1.jpg?1791466387",
        ),
        Item(
            id="m47098121356",
            kind=Kind.ORDINARY,
            title="WF購入正規品\u3000あの花\u3000めんま フィギュア塗装済み完成品",
            status=Status.SOLD_OUT,
            price_yen=75000,
            image_url="https://static.mercdn.net/thumb/item/webp/m47098121356_1.jpg?1791426511",
        ),
    )


def test_both_layouts_may_stand_on_one_page_and_the_order_is_kept() -> None:
    hrefs = [f"/item/m{number:011}" for number in range(6)]
    draw = (old, new)
    cells = [draw[at % 2](f"品{at}", f"{at + 1}00" + "円" * (1 - at % 2), href=href)
             for at, href in enumerate(hrefs)]  # fmt: skip
    page = parse_rendered(grid(SKELETON, *cells, SKELETON))
    assert [item.path for item in page.items] == hrefs
    assert [item.price_yen for item in page.items] == [100, 200, 300, 400, 500, 600]
    assert [item.title for item in page.items] == [f"品{at}" for at in range(6)]


@pytest.mark.parametrize(
    "title",
    [
        *(
            "猫の画像",
            "猫の画像 500円",
            "の画像",
            "犬の画像 売り切れ 1,000円の画像",
            "500円",
            "¥300 SOLD",
        ),
        *(
            "売り切れ",
            "現在 ¥300",
            "入札 オークション",
            "のサムネイル",
            "絵のサムネイル 売り切れ",
            "<b>&amp;",
        ),
        *("出品された商品がありません", '"quoted"', "a  b", "公開停止中", "🎴" * 40, "x" * 1000),
    ],
)
@pytest.mark.parametrize("draw", ["old", "new", "nameless", "gridless"])
def test_a_title_may_hold_any_words_of_the_site(title: str, draw: str) -> None:
    cells = {
        "old": grid(old(title)),
        "new": grid(new(title)),
        "nameless": grid(new(title, has_name=False)),
        "gridless": f"<ul>{SKELETON}{new(title)}</ul>",
    }
    item = only(cells[draw])
    assert (item.title, item.price_yen, item.status) == (title, 900, Status.ON_SALE)
    assert not item.is_auction


@pytest.mark.parametrize("title", ["猫の画像 500円", "絵のサムネイル", "普通"])
def test_a_sold_item_is_told_by_its_marks(title: str) -> None:
    for cell in (
        old(title, mark="売り切れ "),
        new(title, is_sold=True),
        new(title, is_sold=True, has_name=False),
        old(title).replace("</figure>", '<i data-testid="thumbnail-sticker"></i></figure>'),
        new(title).replace("<picture>", '<i data-testid="item-tile-sticker">sold</i><picture>'),
    ):
        item = only(grid(cell))
        assert (item.title, item.status, item.price_yen) == (title, Status.SOLD_OUT, 900)


def test_a_sticker_that_says_something_else_marks_no_sale() -> None:
    assert only(grid(old("x", mark="公開停止中 "))).status is Status.STOP
    for words in ("PR", "10%OFF", "オークション", ""):
        sticker = f'<i data-testid="item-tile-sticker">{words}</i><picture>'
        assert only(grid(new("x").replace("<picture>", sticker))).status is Status.ON_SALE


@pytest.mark.parametrize(
    ("text", "price_yen"),
    [
        ("900", 900),
        ("1,234", 1234),
        ("9,999,999", 9_999_999),
        ("\uff11\uff12\uff0c\uff18\uff10\uff10", 12800),
    ],
)
def test_prices_are_read_as_they_are_written(text: str, price_yen: int) -> None:
    assert only(grid(new("x", text))).price_yen == price_yen
    assert only(grid(new("x", text, sign="￥"))).price_yen == price_yen
    assert only(grid(old("x", f"{text}円"))).price_yen == price_yen


def test_an_auction_is_marked_and_its_price_is_the_bid() -> None:
    for cell in (
        new("x", "300", sign="現在 ¥"),
        new("x", "300", sign="現在\n ¥"),
        old("x", "300円").replace("</figure>", '<span class="merPrice">現在 ¥300</span></figure>'),
        old("x", "300円").replace("</figure>", "<span>オークション</span></figure>"),
    ):
        item = only(grid(cell))
        assert (item.is_auction, item.price_yen) == (True, 300)


def test_the_price_on_the_image_is_read_where_the_label_has_none() -> None:
    shown = '<span class="merPrice"><span>¥</span><span>1,500</span></span></figure>'
    cell = old("猫", "").replace("</figure>", shown)
    assert only(grid(cell)).price_yen == 1500
    unlabelled = old("猫").replace("merItemThumbnail", "other").replace("</figure>", shown)
    item = only(grid(unlabelled))
    assert (item.title, item.price_yen) == ("猫", 1500)


@pytest.mark.parametrize(
    "price",
    ["", "abc", "0", "-300", "US$ 5.64", "12.5", "1,23,4", "9" * 20, "3\u20e3", "300\u200b400"],
)
def test_a_price_that_cannot_be_read_refuses_the_item_and_not_the_page(price: str) -> None:
    good = new("good", href="/item/m00000000001")
    page = parse_rendered(grid(good, new("bad", price), old("ok", href="/item/m00000000002")))
    assert [item.title for item in page.items] == ["good", "ok"]
    assert [why.id for why in page.refused] == [ID]
    assert "price" in page.refused[0].reason


@pytest.mark.parametrize(
    "href",
    [
        *("", "#", "/item/", "/item/x", "/item/m1", f"/shops/product/{ID}", f"/item/{SHOPS_ID}"),
        *("/products/123", "javascript:alert(1)", f"/item/{ID}/edit", "http://[", f"/item/{ID}%00"),
    ],
)
def test_a_link_that_leads_to_no_item_refuses_the_item(href: str) -> None:
    page = parse_rendered(grid(new("good", href="/item/m00000000001"), new("bad", href=href)))
    assert [item.title for item in page.items] == ["good"]
    assert "link" in page.refused[0].reason


@pytest.mark.parametrize("tail", ["", "/", "?source=search", "#x", "/?a=b"])
@pytest.mark.parametrize("head", ["", "https://jp.mercari.com", "//jp.mercari.com"])
def test_a_link_may_be_whole_or_have_a_tail(head: str, tail: str) -> None:
    assert only(grid(new("x", href=f"{head}/item/{ID}{tail}"))).id == ID
    assert only(grid(new("x", href=f"{head}/shops/product/{SHOPS_ID}{tail}"))).kind is Kind.SHOPS


def test_an_item_without_a_title_is_refused() -> None:
    page = parse_rendered(grid(new("good", href="/item/m00000000001"), new(" ", has_name=False)))
    assert "title" in page.refused[0].reason


def test_an_item_drawn_twice_is_one_and_the_good_drawing_counts() -> None:
    page = parse_rendered(grid(new("x", "abc"), new("x"), old("y", "5円"), SKELETON))
    assert [(item.title, item.price_yen) for item in page.items] == [("x", 900)]
    assert page.refused == ()


def test_a_cell_counts_once_even_where_its_grid_has_two_names() -> None:
    with pytest.raises(Invalid, match="1 of 1 items"):
        parse_rendered(grid(new("x", "abc")))


def test_cells_outside_of_the_grid_are_recommendations() -> None:
    other = f"<ul>{new('other', href='/item/m00000000009')}</ul>"
    assert only(grid(new("x"), after=other)).id == ID
    empty = '<div data-testid="item-grid-empty-state"></div>'
    assert parse_rendered(grid(after=empty + other)).is_empty
    with pytest.raises(Invalid, match="neither"):
        parse_rendered(grid(SKELETON, after=other))


@pytest.mark.parametrize(
    "mark",
    [
        '<div class="merEmptyState">x</div>',
        '<div class="a merEmptyState b"></div>',
        '<div data-testid="item-grid-empty-state"></div>',
        "<p>出品された商品がありません</p>",
        "<div><b>申し訳ありません。出品された商品がありません。</b></div>",
    ],
)
def test_a_page_that_says_that_there_are_none_is_empty(mark: str) -> None:
    for page in (
        grid(after=mark),
        grid(SKELETON, after=mark),
        f"<body>{mark}{SCRIPT}</body>",
        mark,
    ):
        assert parse_rendered(page).is_empty
        assert parse_rendered(page).next_token == ""


@pytest.mark.parametrize(
    "page",
    [
        *("", "x", "<html></html>", SCRIPT, SKELETON * 120, grid(), grid(SKELETON)),
        *(
            "<template>出品された商品がありません</template>",
            "<style>出品された商品がありません</style>",
        ),
        *(
            "<title>出品された商品がありません</title>",
            "<p>ページの読み込みに失敗しました</p>",
            "\x00" * 99,
        ),
        '<li data-testid="item-cell"><a href="/item/m12345678901">x</a></li>',
    ],
)
def test_a_page_with_neither_items_nor_a_word_on_them_is_never_an_empty_one(page: str) -> None:
    with pytest.raises(Invalid, match="neither") as caught:
        parse_rendered(page)
    assert caught.value.page == page.encode()


def test_a_page_that_says_both_is_not_understood() -> None:
    with pytest.raises(Invalid, match="says that there are none"):
        parse_rendered(f'<ul>{new("x")}</ul><div class="merEmptyState"></div>')


def test_a_page_of_which_most_cannot_be_read_is_not_understood() -> None:
    cells = [new("x", "?", href=f"/item/m{number:011}") for number in range(3)]
    with pytest.raises(Invalid, match="2 of 3") as caught:
        parse_rendered(grid(old("y", href="/item/m00000000002"), *cells[:2]))
    assert caught.value.page is not None


def test_pages_out_of_all_bounds_are_refused() -> None:
    with pytest.raises(Invalid):
        parse_rendered("<div>" * 100_000)
    with pytest.raises(Invalid, match="more than 1000"):
        parse_rendered("".join(new("x", href=f"/item/m{number:011}") for number in range(1001)))
    with pytest.raises(Invalid):
        parse_rendered(b"x" * (9 * 1024 * 1024))


def test_text_from_a_page_is_made_safe() -> None:
    assert only(grid(new("a\x1b[31mb\x85"))).title == "a\ufffd[31mb\ufffd"
    assert only(grid(new("lone \ud800 x"))).title == "lone ? x"


def test_an_image_that_no_browser_would_load_is_none() -> None:
    for source in ("", "data:image/gif;base64,R0", "javascript:alert(1)", "/a.jpg"):
        cell = new("x").replace("https://static.mercdn.net/b.jpg", source)
        assert only(grid(cell)).image_url is None
    assert only(grid(new("x").replace("<img", "<b"))).image_url is None


def test_an_image_that_leaves_out_the_site_is_at_the_address_of_the_page() -> None:
    for source, found in (("/a.jpg?1", "http://127.0.0.1:5/a.jpg?1"), ("//x/a", None), ("a", None)):
        cell = new("x").replace("https://static.mercdn.net/b.jpg", source)
        assert parse_rendered(grid(cell), "http://127.0.0.1:5").items[0].image_url == found
    assert parse_rendered(grid(new("x")), "http://x").items[0].image_url == (
        "https://static.mercdn.net/b.jpg"
    )


@pytest.mark.parametrize(
    ("button", "token"),
    [
        ('<a href="/search?keyword=a&amp;page_token=v1%3A3">次へ</a>', "v1:3"),
        ('<a href="/search?page_token=v1:12&amp;x=1#y">次へ</a>', "v1:12"),
        ('<a href="/search?keyword=page_token=v1%3A9">次へ</a>', ""),
        *(
            (f'<a href="/search?page_token={wrong}">次へ</a>', "")
            for wrong in ("", "x", "v1%3A", "v2:1")
        ),
        ("<button>次へ</button>", ""),
    ],
)
def test_the_next_page_is_told_by_the_button_that_leads_there(button: str, token: str) -> None:
    after = f'<div data-testid="pagination-next-button">{button}</div>'
    assert parse_rendered(grid(new("x"), after=after)).next_token == token
    direct = button.replace("<a ", '<a data-testid="pagination-next-button" ')
    assert parse_rendered(grid(new("x"), after=direct)).next_token == token


@settings(max_examples=100, deadline=None)
@given(title=st.text(max_size=30), price=st.text(max_size=8), href=st.text(max_size=20))
def test_no_cell_raises_anything_but_our_errors(title: str, price: str, href: str) -> None:
    good = [new("good", href=f"/item/m{number:011}") for number in range(2)]
    page = parse_rendered(grid(*good, old(title, price, href=html.escape(href)), new(title, price)))
    assert {item.id for item in page.items} >= {"m00000000000", "m00000000001"}


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=300))
def test_no_bytes_raise_anything_but_our_errors(body: bytes) -> None:
    with pytest.raises(Invalid):
        parse_rendered(body)
