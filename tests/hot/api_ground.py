"""The ground of the tests of the hot watch's API: served on a socket, fed with made-up crawls."""

import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx2

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.job import NewJob
from mimawari.kernel.rounds import Rounds
from mimawari.watches.hot import franchises, messages, sync, watch
from mimawari.watches.hot.models import Coverage, Crawl, Ip, NewIp, Seen, Status
from tests.app.ground import Api, open_api

START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
WHOLE = Coverage(pages_asked=2, pages_read=2)
CAPPED = Coverage(pages_asked=10, pages_read=9, capped_on_sale=True, capped_sold=True)

_numbers = count(1)


def seen(source_id: str, *, sold: bool = False, **given: Any) -> Seen:
    """Make up an item as a page shows it."""
    status = Status.SOLD if sold else Status.AVAILABLE
    return Seen(source_id=source_id, status=status, **{"title": "x", "price_yen": 1000, **given})


def listed(prefix: str, number: int, *, sold: bool = False) -> list[Seen]:
    """Make up many items."""
    return [seen(f"{prefix}{place:04}", sold=sold) for place in range(number)]


@dataclass(frozen=True, slots=True)
class Hot:
    """The API with the hot watch, on a clock that stands still until it is moved."""

    api: Api
    clock: VirtualClock

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client with a key."""
        return self.api.http

    async def get(self, path: str, **params: Any) -> Any:
        """Ask and insist on an answer."""
        asked = {name.rstrip("_"): value for name, value in params.items()}
        response = await self.http.get(f"/api/v1{path}", params=asked)
        assert response.status_code == 200, response.text
        return response.json()

    async def rows(self, path: str, **params: Any) -> list[dict[str, str]]:
        """Ask for a file and read it as a spreadsheet does."""
        response = await self.http.get(f"/api/v1{path}", params={"format": "csv", **params})
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/csv; charset=utf-8"
        assert response.headers["content-disposition"].startswith('attachment; filename="')
        text = response.content.decode("utf-8")
        assert text.startswith("\ufeff")
        return list(csv.DictReader(io.StringIO(text[1:], newline="")))

    async def add(self, *new: NewIp) -> list[Ip]:
        """Have IPs watched."""
        async with self.api.store.edit() as tx:
            return await franchises.add_ips(tx, new, self.api.system.settings, self.clock.now())

    async def named(self, *names: str) -> list[int]:
        """Have IPs watched, and return their ids."""
        return [ip.id for ip in await self.add(*(NewIp(name=n, keyword=n) for n in names))]

    def crawl_of(self, ip_id: int, items: Sequence[Seen], **given: Any) -> Crawl:
        """Make up a crawl of this moment."""
        values: Mapping[str, Any] = {
            "task_id": f"task-{next(_numbers)}",
            "crawled_at": self.clock.now(),
            "coverage": WHOLE,
            **given,
        }
        return Crawl(ip_id=ip_id, items=tuple(items), **values)

    async def crawl(self, ip_id: int, items: Sequence[Seen] = (), **given: Any) -> None:
        """Apply a crawl, without what the task does around it."""
        async with self.api.store.edit() as tx:
            await sync.apply_crawl(tx, self.crawl_of(ip_id, items, **given), self.clock.now())

    async def work(self, ip_id: int, items: Sequence[Seen] = (), **given: Any) -> None:
        """Have a real worker apply a crawl."""
        args = messages.write_crawl(self.crawl_of(ip_id, items, **given))
        await self.api.store.queue.put([NewJob(kind="hot.apply", args=args)])
        await Rounds(self.api.store, self.clock, self.api.system.watches, {}).work()

    async def flow(self, name: str, *, inflow: int, outflow: int) -> int:
        """Have an IP watched, with so much in this hour after its first crawl; return its id."""
        (ip_id,) = await self.named(name)
        await self.crawl(ip_id)
        await self.bring(ip_id, inflow=inflow, outflow=outflow)
        return ip_id

    async def bring(self, ip_id: int, *, inflow: int, outflow: int) -> None:
        """Let so much come and go in this hour."""
        tag = f"m{next(_numbers)}"
        items = [*listed(f"{tag}a", inflow), *listed(f"{tag}s", outflow, sold=True)]
        await self.crawl(ip_id, items)


@asynccontextmanager
async def open_hot(url: str, folder: Path) -> AsyncIterator[Hot]:
    """Serve the API with the hot watch on a database of its own."""
    clock = VirtualClock(START)
    async with open_api(url, folder, clock=clock, watches=(watch,)) as api:
        yield Hot(api, clock)
