"""Blocking calls run beside the loop; those that hang hold up neither others nor the end."""

import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from threading import Event

import pytest

from mimawari.net.guard import resolve_by_system
from mimawari.net.threads import BoundedThreads

SOON, LONG = timedelta(milliseconds=100), timedelta(seconds=20)


@pytest.fixture
async def stuck() -> AsyncIterator[Callable[[], bool]]:
    """A call that hangs until the test is over."""
    over = Event()
    yield over.wait
    over.set()


async def test_a_call_returns_and_raises_as_if_it_were_made_here() -> None:
    threads = BoundedThreads("test", 1)
    assert await threads.run(lambda: 42, LONG) == 42
    with pytest.raises(ValueError, match="invalid literal"):
        await threads.run(lambda: int("x"), LONG)


async def test_a_call_that_hangs_is_left_at_its_deadline(stuck: Callable[[], bool]) -> None:
    with pytest.raises(TimeoutError):
        await BoundedThreads("test", 1).run(stuck, SOON)


async def test_calls_beyond_the_limit_wait_and_go_on_when_one_is_back(
    stuck: Callable[[], bool],
) -> None:
    threads, gate = BoundedThreads("test", 1), Event()
    with pytest.raises(TimeoutError):
        await threads.run(gate.wait, SOON)
    with pytest.raises(TimeoutError):
        await threads.run(lambda: 1, SOON)
    gate.set()
    assert await threads.run(lambda: 2, LONG) == 2


def test_a_call_that_hangs_does_not_keep_the_process_from_exiting() -> None:
    source = """
import asyncio, threading
from datetime import timedelta
from mimawari.net.threads import BoundedThreads
async def main():
    try:
        await BoundedThreads("x", 1).run(threading.Event().wait, timedelta(seconds=0.1))
    except TimeoutError:
        print("left")
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "left\n"


def test_look_ups_that_hang_leave_the_loops_own_threads_alone() -> None:
    source = """
import asyncio, socket, threading
from mimawari.net import guard
socket.getaddrinfo = lambda *_, **__: threading.Event().wait()
async def main():
    asking = [asyncio.create_task(guard.resolve_by_system(f"x{n}.test", 80)) for n in range(40)]
    await asyncio.sleep(0.2)
    print(await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5))
    for one in asking:
        one.cancel()
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "free\n"


async def test_a_name_is_still_looked_up() -> None:
    assert "127.0.0.1" in await resolve_by_system("localhost", 80)
