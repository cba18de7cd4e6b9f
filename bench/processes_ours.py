"""Measures ours with some worker processes: from their common start to the last acknowledgement."""

import asyncio
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial

from bench.measure import ROOT, ProgramFailed
from bench.ours import BATCH, CONCURRENCY, open_store
from bench.processes_worker import KIND
from bench.program import PATIENCE_SECONDS, check, main
from mimawari.kernel.job import NewJob, State
from mimawari.store.redis import RedisStore
from mimawari.store.sql import SqlStore

SETTINGS = (
    f"all put before the clock starts; each worker process with concurrency {CONCURRENCY};"
    " fence and inbox on; servers' own durable defaults"
)


class Led:
    """A worker process as its parent sees it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._orders, self._said = process.stdin, process.stdout
        self.handled = 0

    async def hear(self) -> None:
        """Wait until it says how many jobs it has handled, or fail if it has ended."""
        line = await self._said.readline()
        if not line:
            raise ProgramFailed("a worker process ended before it was told to")
        self.handled = int(line)

    async def follow(self, told: asyncio.Event) -> None:
        """Hear all that it says, and pass on that it did."""
        while True:
            await self.hear()
            told.set()

    def begin(self) -> None:
        """Let it work."""
        self._orders.write(b"begin\n")

    async def stop(self) -> None:
        """Let it stop, and hear its last word."""
        self._orders.close()
        last = await self._said.read()
        if await self._process.wait() != 0:
            raise ProgramFailed("a worker process failed when it was told to stop")
        self.handled = int(last.split()[-1])

    async def kill(self) -> None:
        """Leave nothing of it."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


@asynccontextmanager
async def led(processes: int, url: str) -> AsyncIterator[Sequence[Led]]:
    """Start worker processes and wait until all are ready; none of them outlives the block."""
    command = (sys.executable, "-m", "bench.processes_worker", url)
    workers: list[Led] = []
    try:
        for _ in range(processes):
            process = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, stdin=PIPE, stdout=PIPE
            )
            workers.append(Led(process))
        for worker in workers:
            await worker.hear()
        yield workers
    finally:
        for worker in workers:
            await worker.kill()


async def _put(jobs: int, url: str) -> None:
    # Closed before anybody works, so that no worker finds Redis untold of something.
    async with open_store(url) as store:
        if isinstance(store, RedisStore):
            await store.relay.look()
        for _ in range(0, jobs, BATCH):
            await store.queue.put([NewJob(kind=KIND) for _ in range(BATCH)])


async def _done(store: SqlStore) -> int:
    return (await store.queue.counts())[State.DONE]


async def _until_done(jobs: int, workers: Sequence[Led], store: SqlStore) -> None:
    """Wait until all jobs are done; the store is asked only when all were handled."""
    told = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        following = [group.create_task(worker.follow(told)) for worker in workers]
        while sum(worker.handled for worker in workers) < jobs or await _done(store) < jobs:
            await told.wait()
            told.clear()
        for one in following:
            one.cancel()


async def _run(processes: int, jobs: int, url: str) -> float:
    await _put(jobs, url)
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        open_store(url) as store,
        led(processes, url) as workers,
    ):
        start = time.perf_counter()
        for worker in workers:
            worker.begin()
        await _until_done(jobs, workers, store)
        seconds = time.perf_counter() - start
        await asyncio.gather(*(worker.stop() for worker in workers))
        check(jobs, sum(worker.handled for worker in workers), await _done(store))
    return seconds


def run(processes: int, jobs: int, url: str) -> float:
    """Give the seconds that waiting jobs took from the processes' start to the last one's end."""
    return asyncio.run(_run(processes, jobs, url))


if __name__ == "__main__":
    main(partial(run, int(sys.argv[1])), SETTINGS)
