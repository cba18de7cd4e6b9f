"""What a crawl leaves behind: upsert, inspect, and what is looked at one by one."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event

from mimawari.store.sql import SqlStore
from mimawari.watches.prices import rules
from mimawari.watches.prices.models import Setting, Sight
from mimawari.watches.prices.tables import results
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

BROKEN = Sight(pages_asked=2, pages_read=1, capped_on_sale=False, capped_sold=False, unpriced=0)


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
    assert applied.undated == ()


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


async def test_what_is_missing_where_it_would_be_shown_is_looked_at_once(
    store: SqlStore,
) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"), found("b"))
    missing = (await kept(store))["b"].id
    first = await apply(store, product, 1, found("a"))
    again = await apply(store, product, 2, found("a"))
    assert (first.missing, again.missing) == ((missing,), ())
    await apply(store, product, 3, found("a"), found("b"))
    assert (await apply(store, product, 4, found("a"))).missing == (missing,)


async def test_what_lies_behind_the_last_page_is_not_missing(store: SqlStore) -> None:
    product = await add_product(store)
    old, new = found("old", listed_at=NOON), found("new", listed_at=NOON + 2 * HOUR)
    await apply(store, product, 3, old, new)
    newest = found("newest", listed_at=NOON + timedelta(hours=1))
    applied = await apply(store, product, 4, newest, sight=CAPPED)
    rows = await kept(store)
    assert applied.missing == (rows["new"].id,)


async def test_a_page_that_failed_proves_nothing(store: SqlStore) -> None:
    product = await add_product(store)
    await apply(store, product, 0, found("a"))
    assert (await apply(store, product, 1, sight=BROKEN)).missing == ()


async def test_what_was_sold_is_looked_at_until_its_date_is_known(store: SqlStore) -> None:
    product = await add_product(store)
    first = await apply(store, product, 0, found("a", sold=True))
    again = await apply(store, product, 1, found("a", sold=True))
    assert first.undated == again.undated == ((await kept(store))["a"].id,)
    assert first.follow_ups == first.undated


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
