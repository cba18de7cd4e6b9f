"""One of the worker processes that the part `processes` measures, led over its input and output."""

import asyncio
import os
import sys
from typing import NoReturn

from bench.ours import CONCURRENCY, open_store
from mimawari.kernel.clock import RealClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job
from mimawari.kernel.loop import LONGEST
from mimawari.kernel.signal import ENDS
from mimawari.kernel.signals import Bell
from mimawari.kernel.watch import Watch, Watches, task
from mimawari.kernel.worker import Worker

KIND = "bench.nothing"


class Handled:
    """How many jobs this process has handled, for its parent to hear."""

    def __init__(self) -> None:
        self.count = 0

    def say(self) -> None:
        """Say the count."""
        print(self.count, flush=True)

    async def say_ends(self, ends: Bell) -> NoReturn:
        """Say the count whenever jobs were ended, the last time after the last one."""
        clock = RealClock()
        while True:
            await ends.wait(clock, clock.now() + LONGEST)
            self.say()


def _watches(handled: Handled) -> Watches:
    @task(KIND, concurrency=CONCURRENCY)
    async def nothing(_job: Job, _ctx: Context) -> None:
        handled.count += 1

    return Watches([Watch(name="bench", tasks=(nothing,))])


async def _orders() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


async def work(url: str) -> None:
    """Say a count when ready, work from the first order on, and stop when no more can come."""
    orders, handled = await _orders(), Handled()
    async with open_store(url) as store:
        worker = Worker(store, RealClock(), _watches(handled), name=f"bench {os.getpid()}")
        ends = store.signal.bell(ENDS)
        await store.ping()
        handled.say()
        await orders.readline()
        async with asyncio.TaskGroup() as parts:
            running = [
                parts.create_task(worker.run()),
                parts.create_task(handled.say_ends(ends)),
            ]
            # Orders end with whoever gives them, however that ends, so nobody is outlived.
            await orders.read()
            for part in running:
                part.cancel()
    handled.say()


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
