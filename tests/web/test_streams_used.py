"""The pages of streams in the hands of somebody with a real browser."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from mimawari.watches.streams import actions
from mimawari.watches.streams.models import Sense, Status, StreamStatus
from tests.conftest import Databases
from tests.web.ground import Browser, open_page, open_site
from tests.web.scene import CALLBACK, GIVEN, add_monitor, keep, url_of


@pytest.fixture
async def visitor(databases: Databases, tmp_path: Path) -> AsyncIterator[Browser]:
    async with open_site(await databases.ready(), tmp_path, **GIVEN) as browser:
        yield browser


@pytest.fixture
async def page(chromium: Chromium, visitor: Browser) -> AsyncIterator[Page]:
    """A page of somebody who is logged in."""
    page = await open_page(chromium, visitor)
    yield page
    await page.context.close()


async def test_a_start_clock_counts_on_by_itself(visitor: Browser, page: Page) -> None:
    system = visitor.api.system
    due = system.clock.now() + timedelta(hours=1)
    monitor = await add_monitor(system, scheduled_start_time=due)
    await keep(system, monitor, status=Status.WAITING, stream=StreamStatus.UPCOMING)
    await page.goto(f"{visitor.api.address}/streams")
    clock = page.locator("[data-clock]")
    seen = await clock.inner_text()
    assert seen.startswith("-0:59:") or seen == "-1:00:00"
    counted = "seen => document.querySelector('[data-clock]').textContent !== seen"
    await page.wait_for_function(counted, arg=seen)
    assert await clock.inner_text() < seen


async def test_an_alert_appears_on_the_wall_while_somebody_looks(
    visitor: Browser, page: Page
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system)
    await keep(system, monitor)
    async with page.expect_response("**/changes"):
        await page.goto(f"{visitor.api.address}/streams")
    assert await page.locator(".card.bad").count() == 0
    await keep(system, monitor, told=(Sense.BLACKOUT,))
    # Whatever happens rings; here a target is put on the schedule.
    await add_monitor(system, 2)
    await page.locator(".card.bad").wait_for()


async def test_a_monitor_is_added_and_stopped_by_hand(visitor: Browser, page: Page) -> None:
    await page.goto(f"{visitor.api.address}/streams/new")
    await page.get_by_label("Stream", exact=True).fill(url_of(1))
    await page.get_by_label("Webhooks go to").fill(CALLBACK)
    await page.get_by_role("button", name="Monitor it").click()
    await page.wait_for_url("**/streams/mon-*")
    monitor_id = page.url.rpartition("/")[2]
    stop = page.get_by_role("button", name="Stop this monitor")
    page.once("dialog", lambda dialog: dialog.dismiss())
    await stop.click()
    view = await actions.find(visitor.api.system, monitor_id)
    assert view.monitor.status is Status.INITIALIZING
    page.once("dialog", lambda dialog: dialog.accept())
    await stop.click()
    await stop.wait_for(state="detached")
    view = await actions.find(visitor.api.system, monitor_id)
    assert view.monitor.status is Status.STOPPED
