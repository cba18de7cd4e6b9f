"""A thread that hangs is left behind, and never too many of them."""

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from threading import Event, current_thread

import pytest

from mimawari.sites.youtube.aside import MOST_STUCK, Aside

SOON, LATE = timedelta(seconds=0.01), timedelta(seconds=60)


class Tool:
    """Knows its thread, and tells when it is closed."""

    def __init__(self) -> None:
        self.thread = current_thread()
        self.closed = Event()

    def close(self) -> None:
        """Note it."""
        self.closed.set()


@pytest.fixture
def released() -> Iterator[Event]:
    event = Event()
    yield event
    event.set()


async def test_calls_share_one_tool_in_one_thread_which_is_closed_in_the_end() -> None:
    aside = Aside(Tool)
    found = await asyncio.gather(
        *(aside.run(lambda tool: (tool, current_thread()), LATE) for _ in range(5))
    )
    ((tool, thread),) = set(found)
    assert tool.thread is thread
    assert thread is not current_thread()
    aside.close()
    assert await asyncio.to_thread(tool.closed.wait, 60)


async def test_what_a_call_raises_is_raised_and_ends_nothing() -> None:
    aside = Aside(Tool)

    def stumble(_tool: Tool) -> None:
        raise LookupError("no such thing")

    first = await aside.run(lambda tool: tool, LATE)
    with pytest.raises(LookupError, match="no such thing"):
        await aside.run(stumble, LATE)
    assert await aside.run(lambda tool: tool, LATE) is first
    aside.close()


async def test_a_tool_that_cannot_be_made_is_tried_again() -> None:
    tools = iter([None, Tool()])

    def make() -> Tool:
        tool = next(tools)
        if tool is None:
            raise LookupError("not yet")
        return tool

    aside = Aside(make)
    with pytest.raises(LookupError):
        await aside.run(lambda tool: tool, LATE)
    assert await aside.run(lambda tool: tool, LATE)
    aside.close()


async def test_after_a_call_that_hangs_the_next_has_a_thread_and_a_tool_of_its_own(
    released: Event,
) -> None:
    aside = Aside(Tool)
    first = await aside.run(lambda tool: tool, LATE)
    with pytest.raises(TimeoutError):
        await aside.run(lambda _: released.wait(), SOON)
    second = await aside.run(lambda tool: tool, LATE)
    assert second.thread is not first.thread
    released.set()
    assert await asyncio.to_thread(first.closed.wait, 60)
    aside.close()


async def test_nobody_is_let_in_while_too_many_hang(released: Event) -> None:
    aside = Aside(Tool)
    tools = []
    for _ in range(MOST_STUCK):
        tools.append(await aside.run(lambda tool: tool, LATE))
        with pytest.raises(TimeoutError):
            await aside.run(lambda _: released.wait(), SOON)
    with pytest.raises(TimeoutError, match="earlier calls hang"):
        await aside.run(lambda tool: tool, LATE)
    released.set()
    for tool in tools:
        await asyncio.to_thread(tool.thread.join, 60)
    assert await aside.run(lambda tool: tool, LATE)
    aside.close()
