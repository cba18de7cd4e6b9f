"""How a browser ends: cancelled, killed, hung or closed, it leaves no process and no file."""

import asyncio
import contextlib
import os
import signal
import sys

import pytest
from playwright.async_api import Page

from mimawari.errors import Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.browser import Browser
from mimawari.net.chromium import Traces, find_traces
from tests.net.little_site import (
    PATIENCE,
    PROGRAM,
    fresh_browser,
    hold,
    read_title,
    traces,
    wait_for_ever,
    wait_until_gone,
)


async def count_contexts(page: Page) -> int:
    assert page.context.browser is not None
    return len(page.context.browser.contexts)


async def test_work_that_is_cancelled_closes_its_page_and_frees_its_place() -> None:
    async with fresh_browser(workers=1) as (browser, left):
        # The first is cancelled while Chromium starts, which goes on for those who come after.
        first = asyncio.create_task(browser.use(wait_for_ever))
        while not left.processes():
            await asyncio.sleep(0.01)
        (driver,) = left.drivers()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        held, task = await hold(browser)
        assert left.drivers() == [driver]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert held.page is not None
        assert held.page.is_closed()
        for turns in (1, 3, 8):
            # Each time cancelled a little later in the opening of the page.
            task = asyncio.create_task(browser.use(wait_for_ever))
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await browser.use(count_contexts) == 1
        assert browser.generation == 1


async def test_a_killed_chromium_ends_its_pages_and_the_next_page_gets_a_new_one() -> None:
    async with fresh_browser() as (browser, left):
        works = [await hold(browser), await hold(browser)]
        known = left.processes()
        (chromium,) = left.chromiums()
        os.kill(chromium, signal.SIGKILL)
        for _, task in works:
            with pytest.raises(Transient, match="Chromium went away"):
                await task
        assert await browser.use(read_title) == ""
        assert browser.generation == 2
        await wait_until_gone(known)


async def test_a_killed_driver_is_replaced_with_its_chromium() -> None:
    with traces() as left:
        async with Browser(VirtualClock()) as browser:
            _, task = await hold(browser)
            known = left.processes()
            (driver,) = left.drivers()
            os.kill(driver, signal.SIGKILL)
            await wait_until_gone({driver})
            # The next page finds that the driver is gone, and the one after it has a new one.
            with contextlib.suppress(Transient):
                await browser.use(read_title)
            assert await browser.use(read_title) == ""
            assert browser.generation == 2
            task.cancel()
            await asyncio.wait({task})
        await wait_until_gone(known)
        assert [name for name in left.files() if "artifacts" not in name] == []


async def test_a_chromium_that_hangs_is_replaced_and_killed() -> None:
    async with fresh_browser() as (browser, left):
        _, task = await hold(browser)
        known = left.processes()
        (chromium,) = left.chromiums()
        os.killpg(chromium, signal.SIGSTOP)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await browser.use(read_title) == ""
        assert browser.generation == 2
        # Left to itself, the driver would wait twice as long.
        async with asyncio.timeout(15):
            await wait_until_gone(known)


async def test_closing_even_if_cancelled_ends_the_pages_at_work_and_those_that_wait() -> None:
    async with fresh_browser() as (browser, left):
        works = [await hold(browser), await hold(browser)]
        tasks = [task for _, task in works] + [asyncio.create_task(browser.use(wait_for_ever))]
        closing = asyncio.create_task(browser.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert left.chromiums() == []
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [(type(end), str(end)) for end in ends] == [(Transient, "the browser is closed")] * 3
        await browser.close()
        with pytest.raises(Transient, match="the browser is closed"):
            await browser.use(read_title)
        assert not await browser.renew("after the end")


async def test_closing_while_it_starts_leaves_nothing() -> None:
    async with fresh_browser() as (browser, left):
        task = asyncio.create_task(browser.use(read_title))
        while not left.processes():
            await asyncio.sleep(0.01)
        await browser.close()
        with pytest.raises(Transient, match="the browser is closed"):
            await task


async def test_nothing_is_left_of_a_browser_whose_program_was_killed() -> None:
    with traces() as left:
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-c", PROGRAM, stdout=asyncio.subprocess.PIPE
        )
        assert program.stdout is not None
        async with asyncio.timeout(PATIENCE.total_seconds()):
            while (line := await program.stdout.readline()) != b"begun\n":
                assert line
        known = left.processes()
        assert len(left.chromiums()) == 1
        program.kill()
        await program.wait()
        await wait_until_gone(known)
        assert left.files() == []


@pytest.mark.parametrize(
    "words", [(), ("--user-data-dir=/home/me/.config/chromium",), ("--user-data-dir=",)]
)
async def test_no_process_is_killed_and_no_folder_removed_that_is_not_the_drivers(
    words: tuple[str, ...],
) -> None:
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", "input()", *words, stdin=asyncio.subprocess.PIPE
    )
    found = find_traces(other.pid)
    assert found == Traces()
    found.kill()
    found.remove()
    await other.communicate(b"go on\n")
    assert other.returncode == 0
    assert find_traces(other.pid) == Traces()
