"""The ground of the prices watch's fault tests: workers on a simulated market that die."""

import json
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from urllib.parse import parse_qs

import structlog
from sqlalchemy import select

from mimawari.app.judges.virtual_run import list_seen
from mimawari.kernel.job import NewJob
from mimawari.kernel.values import Limit
from mimawari.kernel.watch import Watch, Watches
from mimawari.kernel.worker import Worker
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS, Settings
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import inbox, jobs, outbox
from mimawari.watches.prices import market, products, watch
from mimawari.watches.prices.models import Setting
from mimawari.watches.prices.products import CRON, DETAIL, LIST
from mimawari.watches.prices.queries import Run
from mimawari.watches.prices.tables import alerts, removed, results, runs, settings, sightings
from tests.faults.hot_world import ShiftedClock, die_at
from tests.stores import open_store

SECOND = timedelta(seconds=1)
# Prices so near to each other that none is ever out of line: what is cheapest does not depend on
# how many of the sales have their dates yet, which is in another order wherever somebody died.
SETTINGS = (
    Setting(keyword="ビリリカ クリアファイル", min_price=300, max_price=480),
    Setting(keyword="時計塔のミュゲ", min_price=800, max_price=1250, target_price=1000),
    Setting(
        keyword="ガラクタ王国", min_price=300, max_price=470, target_price=310, exclusions=("ポコ",)
    ),
)
OURS = frozenset({"id", "created_at", "updated_at", "removed_at", "last_seen_at"})
RUN = tuple(field.name for field in fields(Run) if field.name not in {"task_id", "crawled_at"})
ALERT = ("product_id", "kind", "external_id", "price", "threshold", "reason")


def hasty() -> Watch:
    """Return the watch with leases and limits so short that tests need not wait for them."""
    hurried = tuple(
        replace(one, lease_for=SECOND, attempts=1000, backoff=(SECOND / 5,)) for one in watch.tasks
    )
    limits = tuple(Limit(name, count=1000, per=SECOND) for name in (LIST, DETAIL))
    return replace(watch, tasks=hurried, limits=limits)


def settings_for(address: str) -> Settings:
    """Return settings that lead to the market."""
    host = address.removeprefix("http://")
    places = {"mercari_api_url": address, "mercari_url": address, "allow_hosts": (host,)}
    return DEFAULTS.model_copy(update={**places, "prices_pages": 1})


async def work_prices(url: str, address: str, shift: timedelta, statement: int | None) -> None:
    """Run a worker of the prices watch until killed, by itself or by another."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    clock = ShiftedClock(shift)
    store = open_store(url, clock)
    if statement is not None:
        die_at(store, statement)
    found = settings_for(address)
    async with open_ways(found, store, clock) as ways:
        watches = Watches([hasty()], found)
        http = partial(Fetcher, ways)
        await Worker(store, clock, watches, name=f"w{os.getpid()}", http=http).run()


async def add_products(store: SqlStore, address: str, now: datetime) -> None:
    """Keep the products, and leave it to the cron to crawl them."""
    async with store.edit() as tx:
        for one in SETTINGS:
            off = replace(one, enabled=False)
            product = await products.add_product(tx, one.keyword, off, settings_for(address), now)
            await products.change_product(tx, product.id, one.keyword, one, now)


async def put_cron(store: SqlStore) -> None:
    """Have every product crawled, as the cron does it."""
    await store.queue.put([NewJob(kind=CRON)])


def asked(world: World) -> Counter[tuple[str, ...]]:
    """Count what the market was asked for, by its own log: each page of a search, each item."""
    found: Counter[tuple[str, ...]] = Counter()
    for seen in list_seen(world, part="market"):
        if searched := seen["searched"]:
            side, page = "/".join(searched["statuses"]), str(searched["page"])
            found[LIST, searched["keyword"], side, page] += 1
        else:
            item_id = parse_qs(seen["query"]).get("id", [seen["path"].split("/")[-1]])
            found[DETAIL, item_id[0]] += 1
    return found


async def kept(store: SqlStore, address: str, now: datetime) -> dict[str, Any]:
    """Tell all that the watch keeps, has told and has done, but for when and under which number."""
    tables = (results, removed, sightings, runs, alerts, settings, outbox)
    async with store.read() as reader:
        rows = {one.name: (await reader.execute(select(one))).all() for one in tables}
        ids = [row.product_id for row in rows[settings.name]]
        worth = {one: await market.find_market(reader, one, 30, now, DEFAULTS) for one in ids}
    return {
        **{one.name: _by_item(rows[one.name], address) for one in (results, removed, sightings)},
        "runs": Counter(tuple(getattr(row, name) for name in RUN) for row in rows[runs.name]),
        "alerts": Counter(
            (*(getattr(row, name) for name in ALERT), row.closed_at is None)
            for row in rows[alerts.name]
        ),
        "lowest": {row.product_id: row.lowest_yen for row in rows[settings.name]},
        "told": Counter((row.key, row.kind) for row in rows[outbox.name]),
        "worth": {
            key: (one.days, one.sold, one.days_to_sell, one.on_sale) for key, one in worth.items()
        },
        "jobs": Counter((one.kind, one.about, one.state) for one in await list_done(store)),
    }


def _by_item(rows: Iterable[Any], address: str) -> dict[tuple[int, str], dict[str, Any]]:
    return {(row.product_id, row.external_id): _plain(row._asdict(), address) for row in rows}


def _plain(row: dict[str, Any], address: str) -> dict[str, Any]:
    """Leave out numbers and times of our own, and where the site is."""
    told = {name: value for name, value in row.items() if name not in OURS}
    if "asked_at" in told:
        told["asked_at"] = told["asked_at"] is not None
    return {
        name: value.replace(address, "") if isinstance(value, str) else value
        for name, value in told.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A job: what it was for, how it stands, and how many attempts came to nothing."""

    kind: str
    about: str
    state: str
    lost: int


async def list_done(store: SqlStore) -> list[Done]:
    """List all jobs, live and done; products go by their keywords and results by their items."""
    names: dict[tuple[str, Any], str] = {}
    async with store.read() as reader:
        for table in (results, removed):
            found = await reader.execute(select(table.c.id, table.c.external_id))
            names |= {("mercariCrawlResultId", row.id): row.external_id for row in found}
        found = await reader.execute(select(settings.c.product_id, settings.c.keyword))
        names |= {("productId", row.product_id): row.keyword for row in found}
        listed = [
            row
            for table in (jobs, inbox)
            for row in await reader.execute(
                select(table.c.kind, table.c.args, table.c.state, table.c.attempts)
            )
        ]
    return [
        Done(
            kind=row.kind,
            about=next((names[one] for one in json.loads(row.args).items() if one in names), ""),
            state=row.state,
            lost=row.attempts - 1,
        )
        for row in listed
    ]
