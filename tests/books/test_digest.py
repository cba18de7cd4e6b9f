"""The digest: everything told, nothing believed, the same bytes each time."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page
from selectolax.lexbor import LexborHTMLParser

from mimawari.errors import BadInput
from mimawari.net.browser import Browser
from mimawari.net.envelope import Envelope
from mimawari.watches.books.digest import Book, Digest, Language, write_digest
from mimawari.watches.books.wrapping import width
from tests.books.newsletter import (
    BARE,
    COVER,
    FOREIGN,
    HARMFUL,
    PLAIN,
    WIDE,
    a_digest,
    full_digest,
)
from tests.net.little_site import fresh_browser


def parsed(digest: Digest) -> EmailMessage:
    """Write a digest and read it as those who get it do."""
    return message_from_bytes(write_digest(digest).as_bytes(), policy=SMTP)


def text_of(digest: Digest) -> str:
    body = parsed(digest).get_body(("plain",))
    assert body is not None
    return str(body.get_content()).replace("\r\n", "\n")


def html_of(digest: Digest) -> str:
    body = parsed(digest).get_body(("html",))
    assert body is not None
    return str(body.get_content())


def tree_of(digest: Digest) -> LexborHTMLParser:
    return LexborHTMLParser(html_of(digest))


@pytest.mark.parametrize(
    ("language", "books", "subject"),
    [
        ("ja", 3, "新着図書 3冊 (2026-11-16)"),
        ("ja", 1, "新着図書 1冊 (2026-11-16)"),
        ("en", 3, "3 new books (2026-11-16)"),
        ("en", 1, "1 new book (2026-11-16)"),
    ],
)
def test_the_subject_counts_the_books(language: Language, books: int, subject: str) -> None:
    assert parsed(a_digest(*[PLAIN] * books, language=language))["Subject"] == subject


def test_the_headers_say_from_whom_to_whom_when_and_how_to_stop() -> None:
    digest = replace(a_digest(), recipients=("ann@example.com", "ben@example.net"))
    message = parsed(digest)
    assert str(message["From"]) == "新着図書 <books@example.org>"
    assert str(message["To"]) == "ann@example.com, ben@example.net"
    assert message["Date"] == "Mon, 16 Nov 2026 08:30:00 +0000"
    assert message["Message-ID"] == "<digest-42@example.org>"
    assert message["Auto-Submitted"] == "auto-generated"
    assert message["List-Unsubscribe"] == "<https://example.org/stop?to=ann>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    Envelope(sender=digest.sender, recipients=digest.recipients, message=message)


def test_who_unsubscribes_by_mail_is_not_asked_to_click() -> None:
    digest = replace(a_digest(), unsubscribe="stop@example.org")
    message = parsed(digest)
    assert message["List-Unsubscribe"] == "<mailto:stop@example.org?subject=unsubscribe>"
    assert message["List-Unsubscribe-Post"] is None
    assert "mailto:stop@example.org?subject=unsubscribe" in text_of(digest)


def test_a_long_address_to_unsubscribe_stays_whole_in_its_header() -> None:
    address = f"https://example.org/stop/{'a1-' * 200}"
    raw = write_digest(replace(a_digest(), unsubscribe=address)).as_bytes()
    assert f"\r\nList-Unsubscribe: <{address}>\r\n".encode() in raw
    assert max(map(len, raw.split(b"\r\n"))) <= 998


@pytest.mark.parametrize("language", ["ja", "en"])
def test_the_same_input_gives_the_same_bytes(language: Language) -> None:
    first, second = (write_digest(full_digest(language)).as_bytes() for _ in range(2))
    assert first == second
    assert first.isascii()
    assert first.count(b"\n") == first.count(b"\r\n")


def test_both_parts_are_utf_8_and_the_text_comes_first() -> None:
    parts = list(parsed(full_digest("ja")).iter_parts())
    assert [part.get_content_type() for part in parts] == ["text/plain", "text/html"]
    for part in parts:
        assert part.get_content_charset() == "utf-8"
        assert "つくりながら学ぶ設計の基本" in part.get_content()
        # Lines of a length that every server takes.
        assert max(map(len, str(part.get_payload()).split("\n"))) <= 78


def test_a_book_is_told_whole_in_text() -> None:
    text = text_of(a_digest(PLAIN, FOREIGN))
    assert "■ consultant-books (2冊)\n\n1. つくりながら学ぶ設計の基本\n" in text
    assert "\n小さく始めて大きく育てる\n山田 太郎、佐藤 花子 / 見本出版 / 2026年3月5日\n" in text
    assert "\nISBN 9784000000004\n" in text
    assert "\nhttps://books.google.co.jp/books?id=abc&dq=a&hl=&source=gbs_api\n" in text
    assert "\n\n2. Systems That Last\n" in text
    assert "Ann Author、Ben Writer、Cy Scribe ほか / Example Press / 2026年3月\n" in text
    assert text.endswith("\n配信を止める:\nhttps://example.org/stop?to=ann\n")


def test_a_book_is_told_whole_in_html() -> None:
    tree = tree_of(a_digest(PLAIN, FOREIGN, language="en"))
    assert [one.attributes["lang"] for one in tree.css("html")] == ["en"]
    assert [one.text() for one in tree.css("h3")] == [PLAIN.title, FOREIGN.title]
    links = [one.attributes["href"] for one in tree.css("h3 a")]
    assert links == [
        "https://books.google.co.jp/books?id=abc&dq=a&hl=&source=gbs_api",
        "https://books.google.com/books?id=def",
    ]
    cover = tree.css("img")[1].attributes
    assert (cover["src"], cover["alt"], cover["width"]) == (COVER, "Cover: Systems That Last", "72")
    told = tree.body.text() if tree.body else ""
    assert "Ann Author, Ben Writer, Cy Scribe et al. · Example Press · March 2026" in told
    assert "ISBN 9780306406157" in told
    assert "November 16, 2026 · 2 books" in told


def test_a_long_description_is_cut_at_the_end_of_a_sentence() -> None:
    assert PLAIN.description is not None
    assert len(PLAIN.description) > 300
    told = [one.text() for one in tree_of(a_digest(PLAIN)).css("p") if one.text()[-1] == "…"]
    assert len(told) == 1
    assert len(told[0]) <= 300
    assert told[0].endswith("できます。…")
    assert PLAIN.description.startswith(told[0][:-1])


@pytest.mark.parametrize(
    ("published", "ja", "en"),
    [
        ("2026", "2026年", "2026"),
        ("2026-03", "2026年3月", "March 2026"),
        ("2026-12-31", "2026年12月31日", "December 31, 2026"),
    ],
)
def test_a_date_is_as_exact_as_it_is_known(published: str, ja: str, en: str) -> None:
    book = Book(title="x", published=published)
    assert f"\n1. x\n{ja}\n\n" in text_of(a_digest(book))
    assert f"\n1. x\n{en}\n\n" in text_of(a_digest(book, language="en"))


@pytest.mark.parametrize("published", [None, "", "soon", "2026-13", "2026-00", "26", "2026-1-1"])
def test_a_date_that_is_none_is_left_out(published: str | None) -> None:
    assert "\n1. x\n\n" in text_of(a_digest(Book(title="x", published=published)))


def test_a_book_without_anything_is_its_title() -> None:
    assert "\n1. 題名だけの本\n\n" in text_of(a_digest(BARE))
    tree = tree_of(a_digest(BARE))
    assert (len(tree.css("img")), len(tree.css("h3 a"))) == (0, 0)
    assert "ISBN" not in html_of(a_digest(BARE))


def test_a_section_without_books_is_left_out() -> None:
    assert "■ none" not in text_of(full_digest("ja"))
    assert len(tree_of(full_digest("ja")).css("h2")) == 2


def test_what_means_harm_is_shown_as_what_it_is() -> None:
    tree = tree_of(a_digest(HARMFUL))
    assert len(tree.css("script, style, link, img, b, iframe, h3 a")) == 0
    told = tree.body.text() if tree.body else ""
    assert '<script>alert("1")</script> & evil' in told
    assert "one Bcc: eve@example.org two" in told
    assert '"><img src=x onerror=alert(2)> · {{ 7 * 7 }}{% for x in y %}' in told
    assert "First. Second & third <script>alert(3)</script>\ufffd\ufffd" in told
    events = [name for one in tree.css("*") for name in one.attributes if name.startswith("on")]
    assert events == []


def test_no_text_of_a_book_makes_a_line_or_a_header_of_its_own() -> None:
    message = parsed(a_digest(HARMFUL))
    assert message["Bcc"] is None
    assert "\none Bcc: eve@example.org two\n" in text_of(a_digest(HARMFUL))
    for part in (text_of(a_digest(HARMFUL)), html_of(a_digest(HARMFUL))):
        assert not re.search("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\x00]", part)


@pytest.mark.parametrize(
    "link",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.org",
        "ftp://example.org",
        "https://user@example.org",
        "https://example.org/a b",
        "https://example.org/\nx",
        "https://example.org/\u202ex",
        'https://example.org/"x',
        "https:///x",
        "",
    ],
)
def test_a_link_that_is_no_address_of_the_web_is_left_out(link: str) -> None:
    digest = a_digest(Book(title="x", info_link=link, thumbnail=link))
    tree = tree_of(digest)
    assert (len(tree.css("img")), len(tree.css("a"))) == (0, 1)
    assert "\n1. x\n\n" in text_of(digest)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sections": ()}, "without a book"),
        ({"recipients": ()}, "plain mail addresses"),
        ({"recipients": ("ann@example.com\r\nBcc: eve@example.org",)}, "plain mail addresses"),
        ({"sender": "Eve <eve@example.org>"}, "plain mail addresses"),
        ({"message_id": "<a@b>\r\nBcc: eve@example.org"}, "Message-ID must be like"),
        ({"message_id": "a@b"}, "Message-ID must be like"),
        ({"unsubscribe": "https://example.org/>\r\nBcc: eve@example.org"}, "unsubscribing goes by"),
        ({"unsubscribe": "http://example.org/"}, "unsubscribing goes by"),
        ({"sent_at": datetime(2026, 11, 16)}, "must have a time zone"),  # noqa: DTZ001 - the point
    ],
)
def test_what_would_break_a_header_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        replace(a_digest(), **change)


def test_text_is_wrapped_by_the_columns_it_takes_and_links_stand_alone() -> None:
    for line in text_of(full_digest("ja")).split("\n"):
        assert line.startswith("https://") or width(line) <= 72
        assert not re.match("[、。」ー]", line)
        assert line == line.rstrip() or line == "-- "
    assert f"\n{WIDE.info_link}\n" in text_of(full_digest("ja"))


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with fresh_browser() as (browser, _):
        yield browser


LOOK = """() => {
  const light = text => {
    const [r, g, b] = text.match(/[\\d.]+/g).map(Number).map(x => x / 255)
      .map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = one => {
    const ground = getComputedStyle(one).backgroundColor;
    return ground !== 'rgba(0, 0, 0, 0)' ? ground : behind(one.parentElement);
  };
  const words = [...document.body.querySelectorAll('*')].filter(one => one.checkVisibility()
    && (one.alt || [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())));
  const contrasts = words.map(one => {
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((a, b) => b - a);
    return (a + 0.05) / (b + 0.05);
  });
  const sizes = words.map(one => parseFloat(getComputedStyle(one).fontSize));
  const beyond = [...document.querySelectorAll('*')]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 0.5).length;
  return JSON.stringify({
    overflow: document.documentElement.scrollWidth - innerWidth, beyond,
    words: words.length, contrast: Math.min(...contrasts), smallest: Math.min(...sizes),
    unnamed: [...document.images].filter(one => !one.alt).length, images: document.images.length,
  });
}"""
"""What can be measured of how a page looks."""


@pytest.mark.parametrize("language", ["ja", "en"])
@pytest.mark.parametrize("across", [390, 800])
async def test_it_fits_a_phone_and_a_desk_and_can_be_read(
    browser: Browser, tmp_path: Path, language: Language, across: int
) -> None:
    page_source = html_of(full_digest(language))

    async def look(page: Page) -> Any:
        await page.set_viewport_size({"width": across, "height": 900})
        await page.set_content(page_source)
        await page.screenshot(path=tmp_path / f"{language}-{across}.png", full_page=True)
        return json.loads(await page.evaluate(LOOK))

    seen = await browser.use(look)
    assert (seen["overflow"], seen["beyond"]) == (0, 0)
    assert (seen["images"], seen["unnamed"]) == (4, 0)
    assert seen["words"] > 30
    assert seen["contrast"] >= 4.5
    assert seen["smallest"] >= 11
