"""Which own pages are read after a crawl: all that pages did not show, in order, within shares."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from mimawari.store.sql import SqlStore
from mimawari.watches.prices import checks, rules, sync
from mimawari.watches.prices.checks import Checks
from mimawari.watches.prices.models import Product, Sight
from mimawari.watches.prices.tables import results, sightings
from tests.prices.crawling import CAPPED, HOUR, NOON, add_product, apply, change, found, kept

BROKEN = Sight(pages_asked=2, pages_read=1, capped_on_sale=False, capped_sold=False, unpriced=0)
MANY = 60


async def choose(
    store: SqlStore, product: Product, hours: float, capacity: int | None = None
) -> Checks:
    """Choose what is read after a crawl, so many hours after noon, that showed nothing."""
    async with store.edit() as tx:
        return await checks.choose(tx, product, NOON + hours * HOUR, capacity)


async def read_page(store: SqlStore, name: str, hours: float) -> None:
    """Take in that an item's own page shows it as it was."""
    at = NOON + hours * HOUR
    async with store.edit() as tx:
        query = select(results).where(results.c.external_id == name)
        row = (await tx.execute(query)).one()
        await sync.save_detail(tx, row, found(name, row.price), None, at)


async def names(store: SqlStore, ids: tuple[int, ...]) -> list[str]:
    """Name results by their items."""
    by_id = {row.id: key for key, row in (await kept(store)).items()}
    return [by_id[one] for one in ids]


async def test_whatever_is_on_sale_and_not_in_the_results_is_asked_after_wherever_it_is_listed(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    old, new = found("old", listed_at=NOON), found("new", listed_at=NOON + 2 * HOUR)
    await apply(store, product, 3, old, new)
    shown = found("shown", listed_at=NOON + HOUR)
    applied = await apply(store, product, 4, shown, sight=CAPPED)
    assert sorted(await names(store, applied.follow_ups)) == ["new", "old"]


async def test_each_is_asked_after_once_at_a_time_and_again_when_it_was_read(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"), found("b"))
    assert len((await choose(store, product, 1)).all) == 2
    assert (await choose(store, product, 2)).all == ()
    await read_page(store, "a", 2.5)
    assert await names(store, (await choose(store, product, 3)).all) == ["a"]


async def test_a_request_that_was_lost_is_made_again_after_a_day(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"))
    await choose(store, product, 1)
    assert (await choose(store, product, 24)).all == ()
    assert len((await choose(store, product, 25.1)).all) == 1


async def test_what_a_page_that_failed_may_have_shown_is_asked_after(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"))
    assert len((await apply(store, product, 1, sight=BROKEN)).follow_ups) == 1


async def test_the_cheapest_come_first_and_then_the_longest_unseen(store: SqlStore) -> None:
    product = await add_product(store)
    items = [found(f"m{number:02}", 1000 + number) for number in range(MANY)]
    await apply(store, product, 0, *items)
    for number in range(MANY):
        await read_page(store, f"m{number:02}", 1 + number / MANY)
    await read_page(store, "m40", 0.5)
    chosen = await choose(store, product, 3, 50)
    cheapest = [f"m{number:02}" for number in range(checks.LEADS)]
    assert await names(store, chosen.leads) == cheapest
    rest = ["m40", *(f"m{number:02}" for number in range(20, MANY) if number != 40)]
    assert await names(store, chosen.unseen) == rest[: 50 - checks.LEADS]


async def test_what_costs_a_little_more_than_the_target_comes_first_too(store: SqlStore) -> None:
    product = await add_product(store, target_price=1039)
    items = [found(f"m{number:02}", 1000 + number) for number in range(MANY)]
    await apply(store, product, 0, *items)
    leads = await names(store, (await choose(store, product, 1)).leads)
    assert sorted(leads) == [f"m{number:02}" for number in (*range(20), *range(40, 50))]


async def test_a_product_asks_for_no_more_than_its_share_and_what_waits_counts(
    store: SqlStore,
) -> None:
    product, other = await add_product(store), await add_product(store)
    items = [found(f"m{number:02}", 1000 + number) for number in range(MANY)]
    await apply(store, product, 0, *items)
    await apply(store, other, 0, *items)
    assert len((await choose(store, product, 1, 40)).all) == 40
    assert len((await choose(store, other, 1, 40)).all) == 20
    assert (await choose(store, product, 2, 40)).all == ()
    # What was not read holds its place in the share, so the queue does not grow.
    assert (await choose(store, other, 2, 40)).all == ()


async def test_neither_what_is_on_sale_nor_what_was_sold_waits_for_all_of_the_other(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    items = [found(f"m{number:02}", 1000 + number) for number in range(MANY)]
    sold = [found(f"s{number:02}", sold=True) for number in range(MANY)]
    await apply(store, product, 0, *items)
    async with store.edit() as tx:
        await tx.execute(sightings.update().values(asked_at=None))
    await apply(store, product, 1, *sold)
    async with store.edit() as tx:
        await tx.execute(sightings.update().values(asked_at=None))
    chosen = await choose(store, product, 2, 60)
    assert (len(chosen.leads), len(chosen.unseen), len(chosen.undated)) == (20, 20, 20)
    first = await names(store, chosen.others[:4])
    assert [name[0] for name in first] == ["m", "s", "m", "s"]


async def test_of_a_category_that_cannot_be_placed_yet_one_comes_first(store: SqlStore) -> None:
    product = await add_product(store)
    items = [found(f"m{number:02}", 1000 + number, category_id=7) for number in range(MANY)]
    await apply(store, product, 0, *items)
    dear = found("dear", 9000, category_id=8)
    await apply(store, product, 1, *items, dear)
    await change(store, product, category_id=5)
    async with store.edit() as tx:
        await tx.execute(sightings.update().values(asked_at=None))
    applied = await apply(store, product, 2)
    assert "dear" in await names(store, applied.checks.leads)


@pytest.mark.parametrize(
    ("capacity", "others", "share"),
    [
        (100, [], 100),
        (100, [0, 0], 100),
        (100, [1000], 50),
        (100, [10, 1000], 45),
        (100, [1000, 10, 20], 35),
        (100, [1000] * 300, 1),
        (0, [], 1),
    ],
)
def test_what_one_leaves_of_an_even_share_falls_to_the_others(
    capacity: int, others: list[int], share: int
) -> None:
    assert rules.find_share(capacity, others) == share


async def test_a_page_that_was_read_since_is_not_read_again(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"))
    row = (await kept(store))["a"]
    async with store.read() as reader:
        assert not await sync.is_read_in_vain(reader, row, NOON + HOUR)
        assert await sync.is_read_in_vain(reader, row, NOON - timedelta(minutes=1))
