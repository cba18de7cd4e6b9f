"""Which addresses of the rentals site are asked for, and what its answers mean."""

from collections.abc import AsyncIterator

import pytest

from mimawari.errors import BadInput, Blocked, Gone, Invalid, Transient
from mimawari.net.page import Outcome, Page
from mimawari.sites.yahoo_realestate import (
    SITE,
    SITE_URL,
    fetch_detail,
    fetch_list,
    parse_detail_url,
    parse_list_url,
)
from tests.sites.asking import ASKED_AT, Answers, PlainHttp, serve_answers
from tests.sites.yahoo_pages import (
    BLOCK_WORDS,
    DETAIL_ID,
    DETAIL_URL,
    LIST_URL,
    make_building,
    make_context,
    make_property,
    write_detail,
    write_list,
)

LIST_PATH = "/rent/search/03/13/13104/"
DETAIL_PATH = f"/rent/detail/{DETAIL_ID}/"
BLOCK = f"<title>Yahoo! JAPAN - {BLOCK_WORDS}</title><h1>{BLOCK_WORDS}</h1>".encode()


@pytest.fixture
async def answers() -> AsyncIterator[Answers]:
    async with serve_answers() as found:
        yield found


def reply(status: int, body: bytes) -> Page:
    return Page(url=LIST_URL, status=status, headers={}, body=body, fetched_at=ASKED_AT)


def test_a_block_is_a_status_together_with_words() -> None:
    assert SITE.name == "yahoo_realestate"
    assert SITE.judge is not None
    verdict = SITE.judge(reply(500, BLOCK))
    assert verdict is not None
    assert verdict.outcome is Outcome.BLOCKED
    assert verdict.reason


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<article>" + BLOCK + b"</article>"),
        (404, BLOCK),
        (410, BLOCK),
        (503, BLOCK),
        (500, b"<h1>Internal Server Error</h1>"),
        (500, b""),
        (200, b""),
    ],
)
def test_either_alone_is_left_to_the_rules_for_all_sites(status: int, body: bytes) -> None:
    assert SITE.judge is not None
    assert SITE.judge(reply(status, body)) is None


async def test_a_list_is_fetched_and_read(answers: Answers) -> None:
    answers.put(LIST_PATH, write_list(make_context(make_building())))
    page = await fetch_list(PlainHttp(), f"{answers.url}{LIST_PATH}?page=1", site_url=answers.url)
    assert [room.rent_yen for room in page.rooms] == [85_000]
    assert page.rooms[0].detail_url.startswith(f"{answers.url}/rent/detail/")
    assert page.next_url == f"{answers.url}{LIST_PATH}?page=2"
    assert answers.asked == [f"{LIST_PATH}?page=1"]


async def test_a_property_is_fetched_and_read(answers: Answers) -> None:
    answers.put(DETAIL_PATH, write_detail(make_property()))
    url = f"{answers.url}{DETAIL_PATH}".rstrip("/")
    found = await fetch_detail(PlainHttp(), f"{url}?from=mail#top", site_url=answers.url)
    assert found.title == "新宿夏目坂コート (2階/1K)"
    assert found.detail_url == f"{answers.url}{DETAIL_PATH}"
    assert answers.asked == [DETAIL_PATH]


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (500, BLOCK, Blocked),
        (404, BLOCK, Gone),
        (410, BLOCK, Gone),
        (500, b"<h1>Internal Server Error</h1>", Transient),
        (503, BLOCK, Transient),
        (403, b"", Blocked),
        (429, b"", Blocked),
        (200, BLOCK, Invalid),
        (200, b"<html><body>Welcome</body></html>", Invalid),
    ],
)
async def test_every_answer_ends_in_its_own_way(
    answers: Answers, status: int, body: bytes, error: type[Exception]
) -> None:
    for path in (LIST_PATH, DETAIL_PATH):
        answers.put(path, body, status=status)
    with pytest.raises(error):
        await fetch_list(PlainHttp(), f"{answers.url}{LIST_PATH}", site_url=answers.url)
    with pytest.raises(error):
        await fetch_detail(PlainHttp(), f"{answers.url}{DETAIL_PATH}", site_url=answers.url)


async def test_a_block_names_the_site(answers: Answers) -> None:
    answers.put(DETAIL_PATH, BLOCK, status=500)
    with pytest.raises(Blocked) as caught:
        await fetch_detail(PlainHttp(), f"{answers.url}{DETAIL_PATH}", site_url=answers.url)
    assert caught.value.site == "yahoo_realestate"


ELSEWHERE = [
    "",
    "nowhere",
    "/rent/search/03/",
    "https://evil.test/rent/search/03/",
    "https://realestate.yahoo.co.jp.evil.test/rent/search/03/",
    "https://evil.test\\@realestate.yahoo.co.jp/rent/search/03/",
    "https://user:word@realestate.yahoo.co.jp/rent/search/03/",
    "https://realestate.yahoo.co.jp:444/rent/search/03/",
    "https://realestate.yahoo.co.jp:0/rent/search/03/",
    "https://realestate.yahoo.co.jp:99999/rent/search/03/",
    "http://realestate.yahoo.co.jp/rent/search/03/",
    "ftp://realestate.yahoo.co.jp/rent/search/03/",
    "javascript:alert(1)",
    "https://[::1/rent/search/03/",
    "https:///rent/search/03/",
    "https://realestate.yahoo.co.jp/",
    "https://realestate.yahoo.co.jp/rent/",
    "https://realestate.yahoo.co.jp/buy/search/03/",
    "https://realestate.yahoo.co.jp/rent/search/../../admin/",
    "https://realestate.yahoo.co.jp/rent/search/%2e%2e/",
    "https://realestate.yahoo.co.jp/rent/search//",
    "https://realestate.yahoo.co.jp/rent/search/a b/",
    "https://realestate.yahoo.co.jp/rent/search/新宿/",
    "https://不動産.yahoo.co.jp/rent/search/03/",
    "https://\uff52ealestate.yahoo.co.jp/rent/search/03/",
    "https://realestate.yahoo.co.jp/rent/search/\n",
    "https://realestate.yahoo.co.jp/rent/search/\ud800/",
    "https://realestate.yahoo.co.jp/rent/search/" + "a-" * 2000 + "!",
    "https://realestate.yahoo.co.jp/rent/search/" + "a" * 500 + "!",
    f"https://realestate.yahoo.co.jp/rent/detail/{'a' * 40}/",
    f"https://realestate.yahoo.co.jp/rent/detail/{'g' * 44}/",
    f"https://realestate.yahoo.co.jp/rent/detail/{'a' * 44}/../",
    f"https://evil.test/rent/detail/{'a' * 44}/",
]


@pytest.mark.parametrize("url", ELSEWHERE)
async def test_no_other_address_is_ever_asked_for(answers: Answers, url: str) -> None:
    with pytest.raises(BadInput):
        await fetch_list(PlainHttp(), url)
    with pytest.raises(BadInput):
        await fetch_detail(PlainHttp(), url)
    assert answers.asked == []


async def test_a_list_is_no_property_and_a_property_no_list() -> None:
    with pytest.raises(BadInput, match="/rent/detail/ID/"):
        await fetch_detail(PlainHttp(), LIST_URL)
    with pytest.raises(BadInput, match="/rent/search/03/13/13104/"):
        await fetch_list(PlainHttp(), DETAIL_URL)


def test_a_refused_address_is_told_with_one_that_would_do() -> None:
    with pytest.raises(BadInput, match=r"give one like http://127\.0\.0\.1:8085/rent/search/"):
        parse_list_url("https://example.com/rent/search/03/", "http://127.0.0.1:8085")


def test_an_address_of_the_real_site_leads_to_the_one_that_stands_in_for_it() -> None:
    found = parse_list_url(f"{SITE_URL}/rent/search/03/13/?page=2", "http://127.0.0.1:8085")
    assert found == "http://127.0.0.1:8085/rent/search/03/13/?page=2"
    url, _ = parse_detail_url(f"{SITE_URL}/rent/detail/{DETAIL_ID}/", "http://127.0.0.1:8085")
    assert url == f"http://127.0.0.1:8085/rent/detail/{DETAIL_ID}/"
    with pytest.raises(BadInput, match="is no list of the site's"):
        parse_list_url("http://127.0.0.1:8085/rent/search/03/")


@pytest.mark.parametrize(
    ("url", "written"),
    [
        (LIST_URL, LIST_URL),
        (LIST_URL[:-1], LIST_URL),
        (f"{LIST_URL}?page=2", f"{LIST_URL}?page=2"),
        (f"{LIST_URL[:-1]}?page=2#top", f"{LIST_URL}?page=2"),
        ("https://REALESTATE.yahoo.co.jp:443/rent/search/?geo=13104", None),
        ("https://realestate.yahoo.co.jp/rent/search/s/000008250678/", None),
        (f"{LIST_URL}?q=新宿", f"{LIST_URL}?q=%E6%96%B0%E5%AE%BF"),
        (f"{LIST_URL}?q=%E6%96%B0", f"{LIST_URL}?q=%E6%96%B0"),
    ],
)
def test_a_list_is_written_with_its_slash(url: str, written: str | None) -> None:
    assert parse_list_url(url) == (written or url)


@pytest.mark.parametrize("sign", ["", "_"])
@pytest.mark.parametrize("end", ["", "/", "?a=1", "/?a=1#b"])
def test_a_property_is_written_with_its_slash_and_nothing_else(sign: str, end: str) -> None:
    url = f"https://realestate.yahoo.co.jp/rent/detail/{sign}{DETAIL_ID}"
    assert parse_detail_url(url + end) == (f"{url}/", f"{sign}{DETAIL_ID}")
