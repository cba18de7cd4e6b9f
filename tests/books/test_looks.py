"""A digest as it comes out of the whole watch, looked at in a real Chromium."""

import json
from collections.abc import AsyncIterator, Mapping
from email import message_from_bytes
from email.policy import SMTP
from typing import Any, get_args

import pytest
from playwright.async_api import Page, Route

from mimawari.kernel.clock import VirtualClock
from mimawari.net.browser import Browser
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books.digest import MOST_DESCRIPTION, Language
from tests.books.newsletter import COVER, ENGLISH, LONG, WIDE
from tests.books.scene import NOON, Catalogue, open_scene, volume
from tests.books.waiting import settings_for
from tests.conftest import Databases
from tests.net.little_site import fresh_browser
from tests.net.post_office import ANN, open_office

COVER_SIZE = (128, 182)
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}"/>'.format(*COVER_SIZE)
ACROSS = 72
"""How wide a cover is shown."""
TITLES = (
    WIDE.title,
    "W" * 120,
    "Systems That Last",
    "<b>Bold</b> & co",
    "つくりながら学ぶ設計の基本",
)
MAIL = ("smtp_host", "smtp_port", "smtp_security", "mail_from")


def a_catalogue() -> Catalogue:
    """Make volumes of which all is known, by turns in two languages, and one of hardly anything."""
    catalogue = Catalogue(len(TITLES))
    for number, (made, title) in enumerate(zip(catalogue.volumes, TITLES, strict=True)):
        made["volumeInfo"] |= {
            "title": title,
            "authors": ["山田 太郎", "Ann Author"],
            "publishedDate": "2026-03-05",
            "description": (LONG, ENGLISH)[number % 2],
            "imageLinks": {"thumbnail": COVER.replace("https:", "http:")},
            "infoLink": f"http://books.google.co.jp/books?id=abc{number}&dq=a&hl=&source=gbs_api",
        }
    catalogue.volumes.append(volume(len(TITLES)))
    return catalogue


async def write_html(databases: Databases, language: Language) -> str:
    """Let the watch find the books and mail them, and return what an inbox shows."""
    clock = VirtualClock(NOON)
    store = SqlStore(databases.fresh("sqlite"), clock)
    await upgrade(store.database)
    async with open_office() as office:
        server = settings_for(office)
        given = {name: getattr(server, name) for name in MAIL}
        given |= {"mail_language": language, "mail_to": (ANN,)}
        given |= {"mail_unsubscribe": "https://example.org/stop?to=ann"}
        async with open_scene(store, clock, a_catalogue(), **given) as scene:
            await scene.add_job("設計の本")
            await scene.pass_time(minutes=5)
    await store.close()
    (taken,) = office.mails
    body = message_from_bytes(taken.content, policy=SMTP).get_body(("html",))
    assert body is not None
    return str(body.get_content())


@pytest.fixture(scope="module")
async def pages(databases: Databases) -> Mapping[Language, str]:
    """The HTML of the digest in each language."""
    return {language: await write_html(databases, language) for language in get_args(Language)}


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with fresh_browser() as (browser, _):
        yield browser


LOOK = """() => {
  const isSeen = one => {
    const at = one.getBoundingClientRect();
    return one.checkVisibility({opacityProperty: true, visibilityProperty: true})
      && at.width > 0 && at.height > 0 && at.left >= 0 && at.right <= innerWidth + 0.5;
  };
  const list = (what, tell) => [...document.querySelectorAll(what)].map(tell);
  return JSON.stringify({
    overflow: document.documentElement.scrollWidth - innerWidth,
    titles: list('h3', one => [one.textContent, isSeen(one)]),
    images: list('img', one => [one.naturalWidth, one.clientWidth, one.clientHeight, isSeen(one)]),
    links: list('a', one => one.href),
    paragraphs: list('p', one => one.textContent),
    language: document.documentElement.lang,
  });
}"""
"""What can be measured of how a page looks."""


async def look(browser: Browser, html: str, across: int) -> dict[str, Any]:
    """Show a page on a screen, with every cover there is, and measure it."""

    async def draw(route: Route) -> None:
        await route.fulfill(body=DRAWING, content_type="image/svg+xml")

    async def measure(page: Page) -> dict[str, Any]:
        await page.route("https://books.google.com/**", draw)
        await page.set_viewport_size({"width": across, "height": 700})
        await page.set_content(html, wait_until="load")
        found: dict[str, Any] = json.loads(await page.evaluate(LOOK))
        return found

    return await browser.use(measure)


@pytest.mark.parametrize("across", [360, 800])
@pytest.mark.parametrize("language", get_args(Language))
async def test_a_real_digest_shows_every_book_on_a_phone_and_on_a_desk(
    browser: Browser, pages: Mapping[Language, str], language: Language, across: int
) -> None:
    seen = await look(browser, pages[language], across)
    assert seen["language"] == language
    assert seen["overflow"] == 0
    assert seen["titles"] == [[title, True] for title in (*TITLES, f"Book {len(TITLES)}")]
    high = ACROSS * COVER_SIZE[1] // COVER_SIZE[0]
    assert seen["images"] == [[COVER_SIZE[0], ACROSS, high, True]] * len(TITLES)
    assert len(seen["links"]) == len(TITLES) + 1
    assert all(link.startswith("https://") for link in seen["links"])
    described = [text for text in seen["paragraphs"] if text.endswith("…")]
    assert len(described) == len(TITLES)
    assert all(MOST_DESCRIPTION / 2 < len(text) <= MOST_DESCRIPTION for text in described)
