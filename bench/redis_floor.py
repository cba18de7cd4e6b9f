"""Measures the floor of ours on Redis: the same statements and scripts, on the bare drivers."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from bench.floor import Driver, connect
from bench.ours import open_store
from bench.program import check, main
from mimawari.ids import new_id
from mimawari.store.redis import RedisStore, names
from mimawari.store.sql.engine import as_rows
from tests.stores import BESIDE

BATCH = 2000
KIND, QUEUE = "bench.nothing", "animetop:queue:bench.nothing"
SETTINGS = f"the same statements and scripts by {BATCH} on the bare drivers, no worker, no tasks"


class Floor:
    """Puts, claims and ends jobs with our statements and scripts and nothing else of ours."""

    def __init__(self, store: RedisStore, driver: Driver) -> None:
        self._put, _, (self._end, *_) = store.queue.statements()
        (self._claim, *_) = store.database.dialect.claim_known()
        self._driver = driver
        self._link = store.link

    async def run(self, jobs: int) -> float:
        """Give the seconds that jobs take."""
        start = time.perf_counter()
        for _ in range(0, jobs, BATCH):
            await self._put_batch([new_id() for _ in range(BATCH)])
        call = ""
        for _ in range(0, jobs, BATCH):
            claim = (1, new_id(), 2, call, QUEUE, "100", BATCH, 2, 0)
            handed = json.loads(await self._link.run("claim", *claim, keys=names.CALLS))
            call = str(claim[1])
            await self._end_batch([job_id for _, job_id, _ in handed])
        return time.perf_counter() - start

    async def _put_batch(self, ids: Sequence[str]) -> None:
        rows = [(job_id, KIND, "{}", None, None, 100, 0, None) for job_id in ids]
        await self._write([(self._put, {**as_rows(rows), "now": 0})])
        message = '{{"jobId":"{}","kind":"bench.nothing","createdAt":"0","args":{{}}}}'
        told = [
            (QUEUE, "100", job_id, 1, "100", 0, False, False, False, "", message.format(job_id))
            for job_id in ids
        ]
        await self._link.run("put", 1, "floor", "jobs floor", 0, "queues", json.dumps(told))

    async def _end_batch(self, ids: Sequence[str]) -> None:
        claims = {**as_rows([(job_id, 0) for job_id in ids]), "worker": "floor", "lease_until": 2}
        ends = {**as_rows([(job_id, 1, "done", None, None) for job_id in ids]), "now": 3}
        await self._write([(self._claim, claims), (self._end, ends)])
        told = [(QUEUE, "100", job_id, 3, "", "", "") for job_id in ids]
        await self._link.run("drop", 0, 1, 3, 1, json.dumps(told), keys=names.PROCESSED)

    async def _write(self, statements: Sequence[tuple[str, dict[str, Any]]]) -> None:
        await self._driver.transaction("BEGIN")
        for statement, values in statements:
            await self._driver.run(statement, values)
        await self._driver.transaction("COMMIT")


async def _floor(jobs: int, url: str) -> float:
    async with open_store(url) as store:
        assert isinstance(store, RedisStore)
        driver = await connect(url.partition(BESIDE)[0])
        seconds = await Floor(store, driver).run(jobs)
        done = (await driver.run("SELECT count(*) FROM inbox WHERE state = 'done'", {}))[0][0]
        check(jobs, jobs, int(done))
    return seconds


def floor(jobs: int, url: str) -> float:
    """Give the seconds that the statements and scripts alone take."""
    return asyncio.run(_floor(jobs, url))


if __name__ == "__main__":
    main(floor, SETTINGS)
