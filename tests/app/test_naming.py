"""Targets go by the names that people gave them, whatever they are of and on each engine."""

from pydantic import SecretStr
from sqlalchemy import select

from mimawari.app.ops import System
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.naming import find_names
from mimawari.kernel.watch import Watches
from mimawari.notify.models import Setting
from mimawari.notify.targets import add_target
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches import INSTALLED
from mimawari.watches.prices.tables import results
from mimawari.watches.rentals.lists import add_list
from tests.books.waiting import add_job
from tests.hot.crawling import add_ip
from tests.prices.crawling import add_product, apply, found
from tests.rentals.seeing import keep, on_page
from tests.web import scene

ROOM = f"{1:044x}"
LIST = f"{DEFAULTS.rentals_url}/rent/search/"


async def test_every_target_that_has_a_name_is_found_by_it(
    store: SqlStore, clock: VirtualClock
) -> None:
    now, watches = clock.now(), Watches(INSTALLED)
    ip = await add_ip(store, "星くず郵便")
    product = await add_product(store)
    await apply(store, product, 0, found("m1", 950, name="星くず郵便 1"))
    await keep(store, now, on_page(ROOM, building_name="メゾン汐見"))
    # One that looks like a number is a name nevertheless.
    await add_job(store, "2026")
    settings = DEFAULTS.model_copy(
        update={"webhook_key": SecretStr("key"), "allow_hosts": ("127.0.0.1",)}
    )
    system = System(settings, clock, store, watches)
    live, coming = [await scene.add_monitor(system, number) for number in (1, 2)]
    await scene.keep(system, live, title="Harbour")
    async with store.edit() as tx:
        rooms = await add_list(tx, LIST, 10, None, DEFAULTS, now)
        phone = await add_target(tx, "phone", Setting(url="env:X"), now)
    async with store.read() as reader:
        item = (await reader.execute(select(results.c.id))).scalar_one()
        wanted = {
            f"hot:{ip.id}": "星くず郵便",
            f"prices:{product.id}": "a product",
            f"prices:result:{item}": "星くず郵便 1",
            f"rentals:{ROOM}": "メゾン汐見",
            f"rentals:list:{rooms.id}": rooms.url,
            "books:2026": "2026",
            f"streams:{live.id}": "Harbour",
            f"streams:{live.id}:told": "Harbour",
            f"streams:{coming.id}": coming.stream_url,
            f"notify:{phone.id}": "phone",
        }
        strangers = ("hot:999999999", "books:none", "rentals:daily", "streams:mon-0", "no:1", "")
        assert await find_names(reader, watches, [*wanted, *strangers]) == wanted
