"""Something of every watch that has targets, as they themselves keep it, under hostile names."""

from dataclasses import replace

from mimawari.kernel.clock import VirtualClock
from tests.app.ground import Api
from tests.books.waiting import a_volume, add_job, find_books, put_digests, settings_for
from tests.hot.api_ground import HOUR, Hot, seen
from tests.prices.crawling import NOON, add_product, apply, found
from tests.rentals.seeing import keep, on_page
from tests.web.scene import HOSTILE

START = NOON
ROOM = f"{1:044x}"


async def fill_watches(api: Api, clock: VirtualClock) -> None:
    """Let every watch have found something; takes two hours."""
    await _fill_hot(Hot(api, clock))
    await _fill_prices(api)
    await _fill_rentals(api, clock)
    await _fill_books(api)


async def _fill_hot(hot: Hot) -> None:
    (ip_id,) = await hot.named(HOSTILE)
    await hot.crawl(ip_id)
    items = [seen(f"m{number}", sold=number > 2, title=HOSTILE) for number in range(5)]
    await hot.crawl(ip_id, items)
    hot.clock.step(HOUR)
    await hot.bring(ip_id, inflow=3, outflow=9)
    hot.clock.step(HOUR)


async def _fill_prices(api: Api) -> None:
    product = await add_product(api.store, target_price=900)
    sold = [found(f"s{number}", 1000 + number, sold=True, name=HOSTILE) for number in range(3)]
    await apply(api.store, product, 0, found("m1", 950, name=HOSTILE), *sold)
    await apply(api.store, product, 1, found("m1", 850, name=HOSTILE), *sold)


async def _fill_rentals(api: Api, clock: VirtualClock) -> None:
    for rent_yen in (72_000, 70_000):
        page = on_page(ROOM, rent_yen=rent_yen, building_name=HOSTILE)
        await keep(api.store, clock.now(), page)


async def _fill_books(api: Api) -> None:
    await add_job(api.store, queries=(HOSTILE,))
    books = [replace(a_volume(number), title=HOSTILE, authors=(HOSTILE,)) for number in range(3)]
    await find_books(api.store, "new", *books[:2])
    await put_digests(api.store, settings_for())
    # This one waits for the next digest.
    await find_books(api.store, "new", books[2])
