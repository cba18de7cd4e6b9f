"""The rounds of the prices watch on the simulated market, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import in_the_log
from mimawari.kernel.job import JobView, State
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.watch import Watches
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.settings import DEFAULTS
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import jobs
from mimawari.watches.prices import products, watch
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.products import CRON, DETAIL, LIST
from mimawari.watches.prices.tables import removed, results, runs
from tests.conftest import Databases

EVENING = datetime(2026, 6, 1, 12, 20, tzinfo=UTC)
ADDRESS = "http://market.test"
QUIET = FRANCHISES[-1].keyword
BUSY = FRANCHISES[5].keyword
"""It has some pages of each side."""


class Scene:
    """The watch at work on a simulated market."""

    def __init__(self, store: SqlStore, world: World, rounds: Rounds) -> None:
        self.store = store
        self.world = world
        self.rounds = rounds

    def order(self, **order: Any) -> None:
        """Have the market misbehave."""
        self.world.orders.add({"part": "market", **order})

    def asked(self, prefix: str) -> list[dict[str, Any]]:
        """List what the market was asked for, by its own log."""
        found = self.world.log.list({"part": "market", "limit": "10000"})["seen"]
        return [one for one in found if one["path"].startswith(prefix)]

    async def add(self, keyword: str = QUIET, **given: Any) -> Product:
        """Watch a product."""
        setting = Setting(keyword=keyword, **given)
        now = self.rounds.clock.now()
        async with self.store.edit() as tx:
            return await products.add_product(
                tx, keyword, setting, self.rounds.watches.settings, now
            )

    async def change(self, product: Product, **given: Any) -> None:
        """Search for the same with other bounds."""
        setting = replace(product.setting, **given)
        now = self.rounds.clock.now()
        async with self.store.edit() as tx:
            await products.change_product(tx, product.id, product.name, setting, now)
            tx.put(products.list_job(product.id))

    async def pass_time(self, **span: float) -> None:
        """Let time pass."""
        await self.rounds.pass_time(timedelta(**span))

    async def jobs(self, kind: str, state: State | None = None) -> list[JobView]:
        """List jobs, oldest first."""
        return (await self.store.queue.list(500, kind=kind, state=state))[::-1]

    async def rows(self, table: Any = results) -> list[Any]:
        """List rows."""
        async with self.store.read() as reader:
            return list((await reader.execute(select(table))).all())


@asynccontextmanager
async def opened(databases: Databases, **given: Any) -> AsyncIterator[Scene]:
    """Set the watch to work."""
    clock = VirtualClock(EVENING)
    store = SqlStore(await databases.ready(), clock)
    world = World(clock, (MarketSite(clock, 1),), 1)
    places = {"mercari_api_url": ADDRESS, "mercari_url": ADDRESS}
    settings = DEFAULTS.model_copy(update={**places, **given})
    inside = httpx2.ASGITransport(app=world)
    async with open_ways(settings, store, clock, inside=inside) as ways:
        watches = Watches([watch], settings)
        http = partial(Fetcher, ways)
        rounds = Rounds(store, clock, watches, in_the_log(), http)
        yield Scene(store, world, rounds)
    await store.close()


@pytest.fixture
async def scene(databases: Databases) -> AsyncIterator[Scene]:
    """One of the test's own."""
    async with opened(databases) as one:
        yield one


async def test_the_first_crawl_reads_all_pages_and_later_ones_three(databases: Databases) -> None:
    async with opened(databases, prices_pages=1) as scene:
        product = await scene.add(BUSY)
        await scene.pass_time(minutes=3)
        first = len(scene.asked("/v2/entities:search"))
        await scene.store.queue.put([products.list_job(product.id)])
        await scene.pass_time(minutes=2)
        later = len(scene.asked("/v2/entities:search")) - first
        assert len(await scene.rows(runs)) == 2
    assert first > 4
    assert later == 2


async def test_the_cap_of_the_first_crawl_is_said(databases: Databases) -> None:
    async with opened(databases, prices_first_pages=1) as scene:
        await scene.add(FRANCHISES[0].keyword)
        await scene.pass_time(minutes=2)
        [run] = await scene.rows(runs)
    assert (run.pages_asked, run.capped_on_sale, run.capped_sold) == (2, True, True)


async def test_another_search_is_read_from_its_first_page_to_its_last_again(
    databases: Databases,
) -> None:
    async with opened(databases, prices_pages=1) as scene:
        product = await scene.add(BUSY)
        await scene.pass_time(minutes=3)
        before = len(scene.asked("/v2/entities:search"))
        await scene.change(product, max_price=100_000)
        await scene.pass_time(minutes=3)
        assert len(await scene.rows(runs)) == 2
    assert len(scene.asked("/v2/entities:search")) - before > 4


async def test_a_setting_that_is_changed_while_pages_are_read_is_searched_for_at_once(
    scene: Scene,
) -> None:
    product = await scene.add()
    scene.order(do="slow", delay_s=5, path="/v2/entities:search", times=1)
    await scene.pass_time(seconds=2)
    await scene.change(product, max_price=1500)
    await scene.pass_time(minutes=2)
    ends = [job.state for job in await scene.jobs(LIST)]
    assert ends == [State.DONE, State.DONE]
    [run] = await scene.rows(runs)
    assert run.left_out == 0
    assert max(row.price for row in await scene.rows()) <= 1500


async def test_messages_are_written_as_described(scene: Scene) -> None:
    product = await scene.add()
    await scene.pass_time(minutes=3)
    [crawl, *_] = await scene.jobs(LIST)
    assert crawl.args == {"type": "listCrawl", "productId": product.id}
    [detail, *_] = await scene.jobs(DETAIL)
    ids = {row.id for row in await scene.rows()}
    assert detail.args["type"] == "syncDetail"
    assert detail.args["mercariCrawlResultId"] in ids


async def test_products_are_crawled_at_each_full_hour(scene: Scene) -> None:
    await scene.add()
    await scene.pass_time(hours=3)
    times = [job.enqueued_at for job in await scene.jobs(LIST)]
    assert [at.strftime("%H:%M") for at in times] == ["12:20", "13:00", "14:00", "15:00"]
    assert len(await scene.jobs(CRON)) == 3


async def test_a_product_that_is_off_is_not_crawled(scene: Scene) -> None:
    await scene.add(enabled=False)
    await scene.pass_time(hours=2)
    assert await scene.jobs(LIST) == []


async def test_what_was_sold_gets_its_date_once_and_the_right_one(scene: Scene) -> None:
    await scene.add()
    await scene.pass_time(hours=4)
    asked = [one["query"] for one in scene.asked("/items/get")]
    assert len(asked) == len(set(asked)) > 3
    market = scene.world.parts["market"]
    truth = market.truth({"view": "items", "keyword": QUIET, "side": "sold"})
    dates = {one["id"]: one["updated_at"] for one in truth["items"]}
    dated = [row for row in await scene.rows() if row.sold_out_at and row.external_id in dates]
    assert len(dated) > 3
    right = [row.sold_out_at == dates[row.external_id][:19].replace("T", " ") for row in dated]
    # What is still on its way to its buyer changes once more after we looked.
    assert sum(right) >= len(right) * 0.8


async def clear(scene: Scene) -> None:
    """Forget the details that wait."""
    async with scene.store.database.write() as session:
        await session.execute(jobs.delete().where(jobs.c.kind == DETAIL))


async def test_an_item_whose_page_is_gone_is_taken_out_and_one_that_fails_is_not(
    scene: Scene,
) -> None:
    await scene.add()
    await scene.pass_time(minutes=1)
    rows = await scene.rows()
    some = next(row for row in rows if row.selling_status == 1 and row.seller_type == 1)
    # Nothing else is asked for meanwhile, so that the order meets this item.
    await clear(scene)
    scene.order(do="status", code=500, path="/items/get", times=1)
    await scene.store.queue.put([products.detail_job(some.id)])
    await scene.pass_time(minutes=2)
    [waits] = [job for job in await scene.jobs(DETAIL) if job.args == detail_args(some.id)]
    assert (waits.state, waits.attempts) == (State.PENDING, 1)
    assert some.external_id in {row.external_id for row in await scene.rows()}
    scene.order(do="gone", path="/items/get", times=1)
    await scene.pass_time(minutes=10)
    assert some.external_id not in {row.external_id for row in await scene.rows()}
    [out] = [row for row in await scene.rows(removed) if row.id == some.id]
    assert (out.kind, out.reason) == ("gone", "the site answered 404")


async def test_an_item_whose_own_page_leaves_the_settings_is_taken_out_as_no_match(
    scene: Scene,
) -> None:
    product = await scene.add()
    await scene.pass_time(minutes=1)
    some = next(row for row in await scene.rows() if row.selling_status == 1)
    await clear(scene)
    setting = replace(product.setting, min_price=some.price + 1)
    async with scene.store.edit() as tx:
        await products.change_product(
            tx, product.id, product.name, setting, scene.rounds.clock.now()
        )
    await scene.store.queue.put([products.detail_job(some.id)])
    await scene.pass_time(minutes=1)
    assert some.id not in {row.id for row in await scene.rows()}
    [out] = [row for row in await scene.rows(removed) if row.id == some.id]
    assert (out.kind, out.price) == ("mismatch", some.price)


def detail_args(result_id: int) -> dict[str, Any]:
    """Write the message of an item's own page."""
    return {"type": "syncDetail", "mercariCrawlResultId": result_id}
