"""What somebody sees of a demo in a browser within two minutes, without a click."""

import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import ConsoleMessage, Page, async_playwright

from tests.app.demo_visit import Demo, run_demo
from tests.app.terminal import Terminal
from tests.faults.world import FULL

pytestmark = pytest.mark.skipif(not FULL, reason="takes minutes; MIMAWARI_FAULTS=full runs it")

TWO_MINUTES = 120.0
SCENES = {
    "ranking": ("/hot", "#board td a"),
    "stream": ("/deliveries", "#events tr:has-text('alert.blackout') .s-delivered"),
    "blocked": ("/", "#incidents .s-open"),
    "exhausted": ("/books", "form[action$='/neko-books/reset']"),
    "alert": ("/prices", "#alerts li"),
    "recovered": ("/rentals", "#gauge .s-closed"),
}
"""Where something is to be seen, and by what; in the order in which it comes to be."""


@asynccontextmanager
async def open_page(demo: Demo, complaints: list[str]) -> AsyncIterator[Page]:
    """Log in to a demo in a browser, and note what the browser complains of."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = await browser.new_page(locale="en-GB")

        def note(said: ConsoleMessage) -> None:
            if said.type == "error":
                complaints.append(said.text)

        page.on("console", note)
        await page.goto(demo.facts()["look"])
        yield page
        await browser.close()


async def see(page: Page, address: str, scene: tuple[str, str], until: float) -> None:
    """Look at a page until something is to be seen on it."""
    path, what = scene
    while time.monotonic() < until:
        await page.goto(address + path)
        if await page.locator(what).count():
            return
        await page.wait_for_timeout(500)
    raise AssertionError(f"nothing like {what} was ever to be seen on {path}")


async def test_all_there_is_to_see_comes_within_two_minutes(
    terminal: Terminal, tmp_path: Path
) -> None:
    complaints: list[str] = []
    with run_demo(terminal) as demo:
        address = demo.facts()["look"].partition("/login")[0]
        until = time.monotonic() + TWO_MINUTES
        async with open_page(demo, complaints) as page:
            await page.goto(f"{address}/hot")
            before = await page.locator("#board").inner_text()
            for name, scene in SCENES.items():
                await see(page, address, scene, until)
                await page.screenshot(path=tmp_path / f"{name}.png")
            await page.goto(f"{address}/hot")
            assert await page.locator("#board").inner_text() != before
            await page.goto(f"{demo.facts()['mail']}")
            assert await page.locator("article").count()
            await page.screenshot(path=tmp_path / "mail.png")
        assert complaints == []
        assert demo.stop() == 0
