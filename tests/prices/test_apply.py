"""What a crawl leaves behind: upsert, inspect, and what is looked at one by one."""

from typing import Any

import pytest
from sqlalchemy import event, select

from mimawari.store.sql import SqlStore
from mimawari.watches.prices import products, rules, sync
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.tables import results, sightings
from tests.prices.crawling import (
    CAPPED,
    HOUR,
    NOON,
    add_product,
    apply,
    change,
    found,
    kept,
    taken_out,
)


async def test_what_is_found_is_kept_once(store: SqlStore) -> None:
    product = await add_product(store)
    first = await apply(store, product, 0, found("a", 1200), found("b", 900, sold=True))
    again = await apply(store, product, 1, found("a", 1200), found("b", 900, sold=True))
    assert (first.added, again.added) == (2, 0)
    rows = await kept(store)
    assert {key: (row.price, row.selling_status) for key, row in rows.items()} == {
        "a": (1200, 1),
        "b": (900, 2),
    }
    assert rows["a"].created_at == rows["a"].updated_at == NOON


async def test_what_changes_is_changed_in_its_row(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", 1200))
    before = (await kept(store))["a"]
    await apply(store, product, 1, found("a", 1000))
    after = (await kept(store))["a"]
    assert (after.id, after.price, after.created_at) == (before.id, 1000, NOON)
    assert after.updated_at == NOON + HOUR


async def test_an_item_of_two_products_is_a_result_of_each(store: SqlStore) -> None:
    first, second = await add_product(store), await add_product(store)
    await apply(store, first, 0, found("a"))
    applied = await apply(store, second, 0, found("a"))
    assert applied.added == 1


async def test_when_it_was_sold_is_kept_by_later_crawls(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", sold=True))
    await date(store, "2026-05-31 12:00:00")
    applied = await apply(store, product, 1, found("a", 900, sold=True))
    assert (await kept(store))["a"].sold_out_at == "2026-05-31 12:00:00"
    assert applied.checks.undated == ()


async def test_what_is_on_sale_again_was_not_sold(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", sold=True))
    await date(store, "2026-05-31 12:00:00")
    await apply(store, product, 1, found("a"))
    assert (await kept(store))["a"].sold_out_at is None


async def date(store: SqlStore, text: str) -> None:
    """Say when everything that was sold was."""
    async with store.edit() as tx:
        sold = results.c.selling_status == 2
        await tx.execute(results.update().where(sold).values(sold_out_at=text))


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"min_price": 1001}, "1,000 yen is less than 1,001"),
        ({"max_price": 999}, "1,000 yen is more than 999"),
        ({"keyword": "星くず郵便 ぬいぐるみ"}, "its name lacks 'ぬいぐるみ'"),
        ({"exclusions": ("\uff21",)}, "its name has '\uff21'"),
    ],
)
async def test_narrowed_settings_move_out_what_does_not_match_with_the_reason(
    store: SqlStore, setting: dict[str, Any], reason: str
) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"))
    await change(store, product, **setting)
    # Not in this crawl's results: by the settings alone it goes.
    applied = await apply(store, product, 1, sight=CAPPED)
    assert applied.removed == 1
    assert await kept(store) == {}
    assert (await taken_out(store))["a"].reason == reason


async def test_widened_settings_lose_nothing(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", 1000), found("b", 5000, sold=True))
    await date(store, "2026-05-31 12:00:00")
    before = await kept(store)
    await change(store, product, max_price=2000)
    await apply(store, product, 1, found("a", 1000))
    await change(store, product, max_price=9000)
    applied = await apply(store, product, 2, found("a", 1000))
    after = await kept(store)
    assert applied.restored == 1
    assert await taken_out(store) == {}
    assert {key: (row.id, row.sold_out_at) for key, row in after.items()} == {
        key: (row.id, row.sold_out_at) for key, row in before.items()
    }


async def test_what_never_matched_is_left_out_and_said(store: SqlStore) -> None:
    product = await add_product(store, max_price=2000)
    applied = await apply(store, product, 0, found("a", 1000), found("b", 5000))
    assert (applied.added, applied.left_out, applied.removed) == (1, 1, 0)


async def test_what_is_not_in_the_results_is_never_taken_out_for_that(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"), found("b", sold=True))
    for hours in range(1, 5):
        await apply(store, product, hours)
    assert set(await kept(store)) == {"a", "b"}


NARROWED = [
    ({"category_id": 5}, "its category is 8, which is not in 5"),
    ({"item_conditions": (1, 3)}, "its condition is 2, not 1, 3"),
]


@pytest.mark.parametrize(("setting", "reason"), NARROWED)
async def test_a_known_category_or_condition_that_does_not_fit_moves_out(
    store: SqlStore, setting: dict[str, Any], reason: str
) -> None:
    product = await add_product(store)
    other = found("a", category_id=8, condition_id=2)
    fits = found("b", category_id=7, condition_id=3)
    await apply(store, product, 0, other, fits, found("c"))
    await place(store, product, "x", category_id=7, category_above=(5,))
    await place(store, product, "y", category_id=8, category_above=(6,))
    await change(store, product, **setting)
    applied = await apply(store, product, 1, sight=CAPPED)
    assert applied.removed == 1
    # Of the last nobody has said anything yet.
    assert set(await kept(store)) == {"b", "c"}
    assert (await taken_out(store))["a"].reason == reason
    await change(store, product)
    assert (await apply(store, product, 2, sight=CAPPED)).restored == 1


@pytest.mark.parametrize("wanted", [7, 6, 5])
async def test_a_category_fits_if_it_or_one_that_it_lies_in_is_the_one_set(
    store: SqlStore, wanted: int
) -> None:
    product = await add_product(store, category_id=wanted)
    await place(store, product, "x", category_id=7, category_above=(5, 6))
    applied = await apply(store, product, 0, found("a", category_id=7))
    assert (applied.added, applied.left_out, applied.removed) == (1, 0, 0)


async def test_what_never_matched_by_its_category_is_left_out(store: SqlStore) -> None:
    product = await add_product(store, category_id=4)
    await place(store, product, "x", category_id=7, category_above=(5, 6))
    applied = await apply(store, product, 0, found("a", category_id=7))
    assert (applied.added, applied.left_out, applied.removed) == (0, 1, 0)


async def test_a_category_whose_place_is_not_known_stays_until_a_page_tells(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", category_id=8), found("b", category_id=8))
    await change(store, product, category_id=5)
    assert (await apply(store, product, 1, sight=CAPPED)).removed == 0
    # One page tells it of all that are filed alike.
    await place(store, product, "a", category_id=8, category_above=(6,))
    assert await kept(store) == {}
    reasons = {row.reason for row in (await taken_out(store)).values()}
    assert reasons == {"its category is 8, which is not in 5"}


async def test_a_page_that_does_not_tell_leaves_what_was_told(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a", category_id=8, condition_id=2))
    await apply(store, product, 1, found("a"))
    async with store.read() as reader:
        [row] = (await reader.execute(select(sightings))).all()
    assert (row.category_id, row.condition_id) == (8, 2)


async def place(store: SqlStore, product: Product, name: str, **told: Any) -> None:
    """Take in where a category lies, as an item's own page tells it."""
    async with store.edit() as tx:
        now = await products.find_product(tx, product.id)
        assert now is not None
        await sync.inspect_one(tx, now, found(name, **told), NOON)


async def test_what_was_sold_is_looked_at_once_while_its_page_is_awaited(store: SqlStore) -> None:
    product = await add_product(store)
    first = await apply(store, product, 0, found("a", sold=True))
    again = await apply(store, product, 1, found("a", sold=True))
    lost = await apply(store, product, 25, found("a", sold=True))
    row = (await kept(store))["a"].id
    assert [one.follow_ups for one in (first, again, lost)] == [(row,), (), (row,)]


async def test_a_thousand_results_take_a_handful_of_statements(store: SqlStore) -> None:
    product = await add_product(store)
    items = [found(f"m{number}", 1000 + number) for number in range(1000)]
    await apply(store, product, 0, *items)
    said: list[str] = []
    engine: Any = store.database.link.engine

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    event.listen(engine, "before_cursor_execute", hear)
    changed = [found(f"m{number}", 2000 + number, sold=True) for number in range(1000)]
    await apply(store, product, 1, *changed)
    event.remove(engine, "before_cursor_execute", hear)
    assert len(said) < 30


def test_wide_and_narrow_letters_are_alike() -> None:
    setting = Setting(keyword="\uff2e\uff25\uff37 ぬい", exclusions=("ｾｯﾄ",))
    assert rules.find_mismatch(setting, "new ぬいぐるみ", 1) is None
    assert rules.find_mismatch(setting, "New ぬい セット", 1) == "its name has 'ｾｯﾄ'"
