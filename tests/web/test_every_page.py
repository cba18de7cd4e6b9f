"""Every page in a real Chromium: both languages, light and dark, on a desk and on a phone."""

import csv
import html
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import axe_playwright_python
import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import ConsoleMessage, Page

from mimawari.kernel.clock import VirtualClock
from mimawari.web.pages import PAGES
from mimawari.web.words import LANGUAGES
from tests.conftest import Databases
from tests.web.ground import Browser, open_page, open_site
from tests.web.looking import LOOK
from tests.web.scene import GIVEN, fill
from tests.web.watched import START, fill_watches

WIDTHS = (1280, 390)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LOCALES = {"ja": "ja-JP", "en": "en-US"}
HIGH = 900
LOOKS = ("site.css", "site.js", "icon.svg")
MOST_BYTES = 300_000
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text("utf-8")
GRAVE = {"serious", "critical"}
EXAMINED = {("light", 1280), ("dark", 390)}
"""Where axe-core looks too: it takes its time, and each colour and each width once is enough."""


@pytest.fixture(scope="module")
async def filled(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Browser]:
    """Somebody who is logged in where there is something of everything."""
    folder: Path = tmp_path_factory.mktemp("site")
    clock = VirtualClock(START)
    given = {"clock": clock, "is_demo": True, **GIVEN}
    async with open_site(await databases.ready(), folder, **given) as browser:
        await browser.log_in()
        await fill_watches(browser.api, clock)
        await fill(browser.api.system)
        yield browser


@pytest.fixture(scope="module")
async def paths(filled: Browser) -> list[str]:
    """One address of every page that is seen, found by following links from those that need none.

    Whoever adds a page adds what leads to it to the scene.
    """
    patterns = {path: _pattern(path) for path, _, methods in PAGES if "GET" in methods}
    found = {path: path for path in patterns if "{" not in path}
    waiting = list(found.values())
    while waiting:
        answer = await filled.get(waiting.pop())
        for link in re.findall(r'(?:href|src)="(/[^"#?]*)', answer.text):
            for path, pattern in patterns.items():
                if path not in found and pattern.fullmatch(link) and link not in patterns:
                    found[path] = link
                    waiting.append(link)
    assert patterns.keys() == found.keys(), "no page of the scene leads to these"
    seen = [path for path in found.values() if await _is_seen(filled, path)]
    return ["/login", *seen]


def _pattern(path: str) -> re.Pattern[str]:
    numbered = re.sub(r"\{\w+:int\}", "[0-9]+", path)
    return re.compile(re.sub(r"\{[^}]+\}", "[^/]+", numbered))


async def _is_seen(visitor: Browser, path: str) -> bool:
    """Say whether a page is one to look at, and none to save or to show inside another."""
    answer = await visitor.get(path)
    assert answer.status_code == 200, path
    return answer.headers["content-type"].startswith("text/html") and "<main" in answer.text


class Watcher:
    """Opens pages of the site, and listens to what the browser complains about."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"a dialog: {dialog.message}"))

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    async def examine(self) -> dict[str, Any]:
        """Have axe-core look at the page, and return its serious and critical findings."""
        # What a browser is told by its driver, no policy of a page forbids.
        await self.page.evaluate(AXE)
        report = await self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return {
            f"axe {one['id']}": [node["html"][:200] for node in one["nodes"]][:5]
            for one in report["violations"]
            if one["impact"] in GRAVE
        }

    async def look(self, address: str) -> dict[str, Any]:
        """Open a page, measure it in every size and colour, and return what is wrong with it."""
        await self.page.goto(address)
        await self.page.evaluate(
            "document.querySelectorAll('details').forEach(one => one.open = 1)"
        )
        wrong: dict[str, Any] = {}
        for scheme in SCHEMES:
            for width in WIDTHS:
                await self.page.set_viewport_size({"width": width, "height": HIGH})
                await self.page.emulate_media(color_scheme=scheme)
                found = json.loads(await self.page.evaluate(LOOK))
                if (scheme, width) in EXAMINED:
                    found |= await self.examine()
                wrong |= {f"{scheme} {width}: {name}": value for name, value in found.items()}
        if self.complaints:
            wrong["complaints"] = self.complaints[:]
            self.complaints.clear()
        return wrong


@pytest.mark.parametrize("language", LANGUAGES)
async def test_every_page_can_be_seen_read_and_used_by_everybody(
    chromium: Chromium, filled: Browser, paths: list[str], language: str
) -> None:
    page = await open_page(chromium, filled, LOCALES[language])
    watcher = Watcher(page)
    wrong = {}
    for path in paths:
        found = await watcher.look(f"{filled.api.address}{path}")
        spoken = await watcher.page.evaluate("document.documentElement.lang")
        if spoken != language:
            found["language"] = spoken
        if found:
            wrong[path] = found
    await page.context.close()
    assert not wrong, json.dumps(wrong, ensure_ascii=False, indent=1)


async def test_no_page_is_large_at_first_sight(filled: Browser, paths: list[str]) -> None:
    looks = [len((await filled.get(f"/static/{name}")).content) for name in LOOKS]
    assert all(looks)
    for path in paths:
        assert len((await filled.get(path)).content) + sum(looks) < MOST_BYTES, path


async def test_whoever_looks_would_notice(chromium: Chromium) -> None:
    context = await chromium.new_context()
    watcher = Watcher(await context.new_page())
    spoilt = """<!DOCTYPE html><body style="background:#fff"><h1>a</h1><h3>b</h3><h1>c</h1>
        <p style="color:#999">pale</p><input id=x><a href="/"></a><svg></svg><img src="data:,">
        <p id=x style="width:3000px">wide</p><script>console.error("bad")</script>"""
    await watcher.page.set_content(spoilt)
    found = json.loads(await watcher.page.evaluate(LOOK))
    assert sorted(found) == [
        "h1", "headings", "language", "nameless", "pale", "title", "twice", "unlabelled", "wide",
    ]  # fmt: skip
    assert watcher.complaints == ["bad"]
    grave = await watcher.examine()
    assert {"axe html-has-lang", "axe image-alt", "axe link-name"} <= grave.keys()
    await context.close()


async def test_what_a_page_lets_save_is_a_file_with_rows(filled: Browser, paths: list[str]) -> None:
    saved = set()
    for path in paths:
        links = set(re.findall(r'href="(\?[^"]*format=csv[^"]*)"', await filled.see(path)))
        for link in links:
            answer = await filled.get(path + html.unescape(link))
            assert answer.headers["content-type"].startswith("text/csv"), path
            head, *rows = csv.reader(answer.text.lstrip("\ufeff").splitlines())
            assert all(len(row) == len(head) for row in rows), path
            saved.add(path)
    lists = {"/books/mail", "/deliveries", "/hot", "/prices", "/queue", "/rentals/list", "/streams"}
    assert saved >= lists
