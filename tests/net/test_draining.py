"""Replacing the browser: a new one first, one moment of change, and no page lost."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import Page
from structlog.testing import capture_logs

from mimawari.errors import Transient
from mimawari.net.browser import Browser, find_executable
from tests.net.little_site import (
    LittleSite,
    Traces,
    fresh_browser,
    go_to,
    hold,
    little_site,
    read_title,
    wait_until_gone,
)

PLACES = 3


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[tuple[Browser, Traces]]:
    """One browser for the tests that only renew it."""
    async with fresh_browser(workers=PLACES) as (browser, left):
        await browser.use(read_title)
        yield browser, left


@pytest.fixture
async def site() -> AsyncIterator[LittleSite]:
    async with little_site() as site:
        yield site


@dataclass(frozen=True, slots=True)
class Begun:
    """What a task saw at its very first step."""

    number: int
    generation: int | None
    current: int
    runs_on: PlaywrightBrowser | None


class Tasks:
    """Work that notes on which browser it begins, and asks the site for a page of its own."""

    def __init__(self, browser: Browser, site: LittleSite, paths: list[str]) -> None:
        self._browser = browser
        self._site = site
        self._paths = paths
        self.begun: list[Begun] = []
        self.running = [
            asyncio.create_task(browser.use(partial(self._work, number)))
            for number in range(len(paths))
        ]

    async def _work(self, number: int, page: Page) -> str:
        self.begun.append(
            Begun(
                number,
                self._browser.generation_of(page),
                self._browser.generation,
                page.context.browser,
            )
        )
        return await go_to(self._site.url(self._paths[number]), page)

    async def check(self) -> None:
        """Check that each task ran once, and on the browser that was in use when it began."""
        assert await asyncio.gather(*self.running) == self._paths
        assert sorted(one.number for one in self.begun) == list(range(len(self._paths)))
        assert [one.generation for one in self.begun] == [one.current for one in self.begun]
        # The numbers tell the truth: each stands for one browser of the driver's.
        pairs = {(one.generation, one.runs_on) for one in self.begun}
        assert len(pairs) == len({one.runs_on for one in self.begun})
        assert len(pairs) == len({one.generation for one in self.begun})
        asked = [one for one in self._site.paths() if one in self._paths]
        assert sorted(asked) == sorted(self._paths)


async def test_pages_at_work_end_on_the_old_browser_and_all_others_begin_on_the_new_one(
    shared: tuple[Browser, Traces], site: LittleSite
) -> None:
    browser, left = shared
    before, old = browser.generation, left.processes()
    paths = [f"/slow/{number}" for number in range(PLACES)] + ["/a", "/b", "/c"]
    tasks = Tasks(browser, site, paths)
    await site.wait_for(*paths[:PLACES])
    assert await browser.renew("the test wants it")
    # The places are taken still, and the old browser is there as long as it is needed.
    assert len(left.chromiums()) == 2
    assert len(tasks.begun) == PLACES
    await site.release(*paths)
    await tasks.check()
    began_on = {one.number: one.generation for one in tasks.begun}
    assert began_on == dict(enumerate([before] * PLACES + [before + 1] * 3))
    await wait_until_gone(old)
    assert len(left.chromiums()) == 1


async def test_no_page_is_lost_while_browsers_come_and_go_under_load(
    shared: tuple[Browser, Traces], site: LittleSite
) -> None:
    browser, left = shared
    before, old = browser.generation, left.processes()
    tasks = Tasks(browser, site, [f"/free/{number}" for number in range(12)])
    await site.wait_for("/free/0")
    for _ in range(3):
        # Wherever the others are in opening, using and closing their pages.
        assert await browser.renew("the test wants it")
    late = Tasks(browser, site, ["/late"])
    await tasks.check()
    await late.check()
    began_on = {one.number: one.generation for one in tasks.begun}
    assert began_on[0] == before
    assert [one.generation for one in late.begun] == [browser.generation] == [before + 3]
    await wait_until_gone(old)


async def test_a_page_that_outstays_the_drain_is_ended_and_may_be_tried_again() -> None:
    async with fresh_browser(drain_for=timedelta(seconds=1)) as (browser, left):
        held, task = await hold(browser)
        old = left.processes()
        assert await browser.renew("the test wants it")
        with pytest.raises(Transient, match="the browser was replaced before the page was done"):
            await task
        assert held.page is not None
        assert held.page.is_closed()
        await wait_until_gone(old)
        assert await browser.use(read_title) == ""
        assert browser.generation == 2


async def test_the_old_browser_stays_while_no_new_one_can_be_started(tmp_path: Path) -> None:
    chromium = tmp_path / "chromium"
    works, broken = f'exec {find_executable(None)} "$@"', "echo disk full >&2; exit 1"
    chromium.write_text(f"#!/bin/sh\n{works}\n")
    chromium.chmod(0o755)
    async with fresh_browser(executable=str(chromium), pages_each=2) as (browser, left):
        _, task = await hold(browser)
        before = left.chromiums()
        chromium.write_text(f"#!/bin/sh\n{broken}\n")
        with capture_logs() as lines:
            assert not await browser.renew("the test wants it")
            # Two more pages ask for a renewal of themselves, which fails as well.
            assert [await browser.use(read_title) for _ in range(2)] == ["", ""]
            assert not await browser.renew("the same one, or one more")
        assert browser.generation == 1
        assert left.chromiums() == before
        assert not task.done()
        said = [line for line in lines if line["event"] == "browser not started"]
        assert {line["component"] for line in said} == {"browser"}
        assert {line["result"] for line in said} == {"the old one stays"}
        assert {line["reason"] for line in said} == {"Chromium could not be started: disk full"}

        chromium.write_text(f"#!/bin/sh\n{works}\n")
        assert await browser.renew("it is mended")
        assert browser.generation == 2
        task.cancel()
        await asyncio.wait({task})


async def test_renewals_at_the_same_time_are_one_and_outlive_their_callers(
    shared: tuple[Browser, Traces],
) -> None:
    browser, left = shared
    before, old = browser.generation, left.processes()
    first = asyncio.create_task(browser.renew("cancelled"))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    with capture_logs() as lines:
        assert await asyncio.gather(*(browser.renew(f"want {n}") for n in range(5))) == [True] * 5
    assert browser.generation == before + 1
    started = [line for line in lines if line["event"] == "browser started"]
    assert [line["reason"] for line in started] == ["cancelled"]
    await wait_until_gone(old)


async def test_after_its_share_of_pages_a_browser_is_replaced_by_itself() -> None:
    async with fresh_browser(pages_each=3) as (browser, _):
        with capture_logs() as lines:
            assert [await browser.use(read_title) for _ in range(3)] == [""] * 3
            # The renewal that is on its way by itself is joined: otherwise this is the third.
            assert await browser.renew("the test wants it")
        assert browser.generation == 2
        reasons = [line["reason"] for line in lines if line["event"] == "browser started"]
        assert reasons == ["the first page", "3 pages were opened"]
