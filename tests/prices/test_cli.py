"""The commands of the prices watch, as a person and as a program use them."""

import csv
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from rich.cells import cell_len

from mimawari.kernel.clock import RealClock
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.watches.prices import alerts, products
from mimawari.watches.prices.models import Product
from tests.app.filled import Behind
from tests.app.screen import Screen
from tests.prices.crawling import HOUR, NOON, add_product, apply, found
from tests.prices.test_market import sell
from tests.ready import lay_tables

DAY = timedelta(days=1)
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
PRICES = (900, 950, 1000, 1000, 1000, 1000, 1050, 1100, 9_999_999)


async def fill(data: Path) -> None:
    """Keep a product with sales of two days, a bargain and an alert, and one with nothing."""
    clock = RealClock()
    store = SqlStore(await lay_tables(data / "mimawari.db"), clock)
    now = clock.now()
    first = await add_product(store, target_price=800)
    sold = [found(f"s{number}", price, sold=True) for number, price in enumerate(PRICES)]
    hours = (now - NOON) / HOUR
    await apply(store, first, hours - 1, *sold)
    for number, price in enumerate(PRICES):
        await sell(store, f"s{number}", price, now - (1 + number % 2 * 2) * DAY)
    await apply(store, first, hours, found("bargain", 700, name=HOSTILE + "星くず郵便"))
    await tell(store, first, now)
    await add_product(store, enabled=False)
    await store.close()


async def tell(store: SqlStore, product: Product, now: datetime) -> None:
    """Open the alerts that there are."""
    async with store.edit() as tx:
        known = await products.find_product(tx, product.id)
        assert known is not None
        await alerts.sync_alerts(tx, known, DEFAULTS, now)


@pytest.fixture(scope="module")
def behind() -> Behind:
    """What the screens of this watch have behind them."""
    return Behind("prices", fill)


def test_a_product_is_added_listed_shown_and_forgotten(empty: Screen) -> None:
    added = empty.run("product", "add", "切手", "--min-price", "500", "--exclude", "ジャンク")
    assert added.out == "Product 1, 切手, is crawled as soon as a worker is free.\n"
    assert "切手" in empty.run("product", "ls").out
    shown = empty.run("product", "show", "1").out
    for words in ("from 500 yen", "ジャンク", "no worker is running"):
        assert words in shown
    kept = empty.run("product", "rm", "1")
    assert (kept.code, "product rm 1 --yes" in kept.err) == (2, True)
    assert empty.run("product", "rm", "1", "--yes").code == 0
    assert "product add NAME" in empty.run("product", "ls").out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--keyword", ""), "keyword: must have 1 to 200 characters"),
        (("--min-price", "500", "--max-price", "100"), "max_price is less than min_price"),
        (("--exclude", "切"), "would exclude everything"),
        (("--condition", "7"), "item_conditions: Input should be less than or equal to 6"),
        (("--under-median", "100"), "median_percent: Input should be less than"),
        (("--target", "0"), "target_price: Input should be greater than"),
        (("--keyword", "x" * 201), "keyword:"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(
    empty: Screen, words: tuple[str, ...], sentence: str
) -> None:
    refused = empty.run("product", "add", "切手", *words)
    assert refused.code == 2
    assert sentence in refused.err
    assert "product add NAME" in empty.run("product", "ls").out


def test_a_product_is_changed_and_switched_off_and_on(empty: Screen) -> None:
    empty.run("product", "add", "切手", "--disabled")
    assert "not crawled yet" in empty.run("product", "add", "葉書", "--disabled").out
    changed = empty.run("product", "set", "1", "--name", "絵葉書", "--target", "300")
    assert "300 yen or less is told" in changed.out
    assert "crawled as soon as" in empty.run("product", "enable", "1").out
    [first, _] = json.loads(empty.run("product", "ls", "--json").out)
    assert (first["name"], first["setting"]["enabled"]) == ("絵葉書", True)
    assert "not crawled any more" in empty.run("product", "disable", "1").out
    assert "nothing to change" in empty.run("product", "set", "1").err


@pytest.mark.parametrize(
    "words",
    [("product", "show", "9"), ("product", "rm", "9", "--yes"), ("market", "9"), ("crawl", "9")],
)
def test_a_product_that_is_not_there_is_told(empty: Screen, words: tuple[str, ...]) -> None:
    refused = empty.run(*words)
    assert refused.code != 0
    assert "no product goes by the id 9; `mimawari prices product ls`" in refused.err


def test_the_market_is_drawn_day_by_day_with_what_is_left_out(filled: Screen) -> None:
    said = filled.run("market", "1")
    assert said.code == 0
    lines = said.out.splitlines()
    assert all(cell_len(line) <= 80 for line in lines[:7])
    days = [line for line in lines if "◆" in line and "median" not in line]
    assert len(days) == 2
    assert len([line for line in lines if line.endswith("–      0")]) == 1
    for words in ("8, median 1,000 yen", "700 yen, 30% under the median", "1 of what was sold:"):
        assert words in said.out
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out


def test_the_market_is_written_for_programs(filled: Screen) -> None:
    there = json.loads(filled.run("market", "1", "--json").out)
    assert (there["sold"]["count"], there["cheapest"]["price"]) == (8, 700)
    assert [day["count"] for day in there["days"]] == [4, 4]
    rows = list(csv.DictReader(filled.run("market", "1", "--csv").out.splitlines()))
    assert [row["count"] for row in rows] == ["4", "4"]
    both = filled.run("market", "1", "--csv", "--json")
    assert (both.code, "one output only" in both.err) == (2, True)


def test_of_an_empty_market_it_is_said_that_nothing_was_seen(filled: Screen) -> None:
    assert "nothing seen yet" in filled.run("market", "2").out


def test_products_are_listed_with_their_worth(filled: Screen) -> None:
    [_, first, second, _] = filled.run("product", "ls").out.splitlines()
    assert first.split()[3:8] == ["yes", "8", "1,000", "700", "30%"]
    assert second.split()[3] == "no"


def test_alerts_are_listed_and_shown_with_their_product(filled: Screen) -> None:
    assert "under target" in filled.run("alerts").out
    assert "for 700 yen; the target is 800 yen" in filled.run("product", "show", "1").out
    [alert] = json.loads(filled.run("alerts", "--json").out)
    assert (alert["kind"], alert["price"]) == ("under_target", 700)
    assert filled.run("alerts", "--product", "2").out == "Nothing to tell.\n"


def test_a_crawl_says_at_once_that_no_worker_is_running(filled: Screen) -> None:
    said = filled.run("crawl")
    assert said.code == 0
    assert "waiting" in said.out
    assert "1: no worker is running; start one with `mimawari serve`" in said.out
    [told] = json.loads(filled.run("crawl", "1", "--json").out)["crawls"]
    assert (told["productId"], told["state"]) == (1, "waiting")


def test_where_nothing_is_enabled_a_crawl_says_so(empty: Screen) -> None:
    empty.run("product", "add", "切手", "--disabled")
    assert "No product is enabled" in empty.run("crawl").out
