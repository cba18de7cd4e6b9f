"""One thread for a library that blocks; a call that does not come back is left behind with it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from queue import SimpleQueue
from threading import Thread
from typing import Any, Generic, Protocol, TypeVar


class Closable(Protocol):
    """What a thread works with."""

    def close(self) -> None:
        """Give up what it holds."""
        ...


S = TypeVar("S", bound=Closable)
T = TypeVar("T")

MOST_STUCK = 4
"""So many threads may hang; then nobody is let in until one of them is back."""


class _Worker(Generic[S]):
    """A thread with a tool of its own, made at the first call."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._calls: SimpleQueue[tuple[Callable[[S], Any], Future[Any]] | None] = SimpleQueue()
        # A thread that hangs must not hold up the end of the process.
        self._thread = Thread(target=self._work, name="mimawari-aside", daemon=True)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def put(self, call: Callable[[S], T]) -> Future[T]:
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        self._calls.put((call, future))
        return future

    def dismiss(self) -> None:
        """Let the thread end once it is back from what it does."""
        self._calls.put(None)

    def _work(self) -> None:
        tool: S | None = None
        while (given := self._calls.get()) is not None:
            call, future = given
            try:
                tool = tool or self._make()
                future.set_result(call(tool))
            except BaseException as error:  # noqa: BLE001 - it is raised where the call was made
                future.set_exception(error)
        if tool is not None:
            tool.close()


class Aside(Generic[S]):
    """Runs calls one after another, each within a time that counts from its own turn."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._turn = asyncio.Lock()
        self._worker: _Worker[S] | None = None
        self._stuck: list[_Worker[S]] = []

    async def run(self, call: Callable[[S], T], within: timedelta) -> T:
        """Return what the call returns, or raise TimeoutError and go on with a new thread."""
        async with self._turn:
            worker = self._hire()
            future = worker.put(call)
            try:
                async with asyncio.timeout(within.total_seconds()):
                    return await asyncio.wrap_future(future)
            finally:
                if not future.done():
                    self._stuck.append(worker)
                    self.close()

    def close(self) -> None:
        """Let the thread end; the next call starts another."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.dismiss()

    def _hire(self) -> _Worker[S]:
        self._stuck = [worker for worker in self._stuck if worker.is_alive]
        if len(self._stuck) >= MOST_STUCK:
            raise TimeoutError(f"{MOST_STUCK} earlier calls hang")
        if self._worker is None:
            self._worker = _Worker(self._make)
        return self._worker
