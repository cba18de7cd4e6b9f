"""Parts of pages that renew themselves, in the hands of somebody with a real browser."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from mimawari.kernel.job import NewJob
from tests.web.ground import Browser, open_page


@pytest.fixture
async def page(chromium: Chromium, visitor: Browser) -> AsyncIterator[Page]:
    """A page of somebody who is logged in."""
    page = await open_page(chromium, visitor)
    yield page
    await page.context.close()


async def test_what_was_scrolled_aside_stays_so_when_a_part_renews_itself(
    visitor: Browser, page: Page
) -> None:
    system = visitor.api.system
    await page.set_viewport_size({"width": 390, "height": 800})
    await system.store.queue.put([NewJob(kind="hot.crawl", target="somewhere")])
    async with page.expect_response("**/changes"):
        await page.goto(f"{visitor.api.address}/queue")
    table = page.locator("#list .scroll")
    aside = await table.evaluate("one => { one.scrollLeft = 40; return one.scrollLeft; }")
    assert aside > 0
    await system.store.queue.put([NewJob(kind="hot.crawl", target="elsewhere")])
    await page.get_by_text("elsewhere").wait_for()
    assert await table.evaluate("one => one.scrollLeft") == aside


async def test_nothing_is_renewed_while_somebody_has_selected_something(
    visitor: Browser, page: Page
) -> None:
    system = visitor.api.system
    await system.store.queue.put([NewJob(kind="hot.crawl", target="somewhere")])
    async with page.expect_response("**/changes"):
        await page.goto(f"{visitor.api.address}/queue")
    await page.get_by_text("somewhere").select_text()
    async with page.expect_response("**/queue"):
        await system.store.queue.put([NewJob(kind="hot.crawl", target="elsewhere")])
    await page.locator("#counts").get_by_text("2", exact=True).wait_for()
    assert await page.get_by_text("elsewhere").count() == 0
