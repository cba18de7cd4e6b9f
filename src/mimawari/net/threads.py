"""Run blocking calls of the system beside the event loop, bounded in number and in time.

A thread that hangs, in a dead mount or a name server that never answers, cannot be ended. Such
threads are daemons, so that they never keep the process from exiting, and their number is limited,
so that they never use up what others need.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class BoundedThreads:
    """Runs each call in a daemon thread of its own, a limited number at a time."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._running: list[tuple[Thread, Future[Any]]] = []

    async def run(self, call: Callable[[], T], within: timedelta) -> T:
        """Return what the call returns; raise TimeoutError at the deadline, waiting included."""
        async with asyncio.timeout(within.total_seconds()):
            while len(running := self._find_running()) >= self._most:
                waiting = {asyncio.wrap_future(future) for future in running}
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            future: Future[T] = Future()
            # One that runs cannot be taken back: the thread ends it, whoever still waits.
            future.set_running_or_notify_cancel()
            thread = Thread(target=_run, args=(call, future), name=self._name, daemon=True)
            self._running.append((thread, future))
            thread.start()
            return await asyncio.wrap_future(future)

    def _find_running(self) -> list[Future[Any]]:
        # After a fork no thread of the parent is alive here, whatever its future says.
        self._running = [one for one in self._running if one[0].is_alive()]
        return [future for _, future in self._running]


def _run(call: Callable[[], T], future: "Future[T]") -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - it is raised where the call was made
        future.set_exception(error)
    else:
        future.set_result(result)
