"""The check of the prices watch by the simulated market's truth: it passes, and it could fail."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from mimawari.app.judges.prices import (
    SETTINGS,
    Evidence,
    Report,
    Stored,
    judge,
    look_again,
    make_wanted,
    watch_prices,
)
from mimawari.app.judges.virtual_run import START
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.api import PAGE_SIZE
from mimawari.sim.sites.mercari.market import ON_SALE, SOLD, Market, Sieve
from mimawari.sim.sites.mercari.sales import Sales
from mimawari.watches.prices.market import Day
from mimawari.watches.prices.models import Setting
from tests.app.terminal import Terminal

SEED, DAYS = 11, 0.5
FEW = (
    Setting(keyword="ガラクタ王国", max_price=1000, exclusions=("缶バッジ",)),
    Setting(keyword="時計塔のミュゲ", min_price=800),
    Setting(keyword="ねむり猫の魔法帳", category_id=5141),
)


@cache
def done() -> list[float]:
    return []


@cache
def evidence() -> Evidence:
    """Watch once for all tests."""
    return asyncio.run(watch_prices(SEED, DAYS, FEW, done().append))


@cache
def sales() -> Sales:
    return look_again(evidence())


def test_every_sale_that_could_be_seen_is_kept_once_with_its_price_and_its_time() -> None:
    report = judge(evidence(), sales())
    assert report.ok, report
    assert (report.seed, report.days, report.products) == (SEED, DAYS, len(FEW))
    assert report.crawls == len(FEW) * 12
    assert report.requests > report.crawls * 2 + report.sales_seen
    assert report.sales_seen == len(evidence().stored) > 40
    assert report.medians_compared > 12
    assert 0.5 < report.share_seen <= 1.0
    assert report.sales_true > 1
    assert 0.1 < report.exact_moment <= report.same_day < 1.0
    assert report.examples == []
    assert done() == sorted(done())
    assert done()[-1] == 1.0


def spoiled(stored: Sequence[Stored]) -> Report:
    return judge(replace(evidence(), stored=stored), sales())


def wrong(report: Report) -> dict[str, int]:
    """Tell what is not as it should be."""
    names = ("missing", "extra", "wrong_price", "wrong_day", "medians_differing")
    found = {name: getattr(report, name) for name in names if getattr(report, name)}
    assert report.ok == (not found)
    return found


def test_a_sale_that_was_lost_is_noticed() -> None:
    lost, *others = evidence().stored
    report = spoiled(others)
    assert wrong(report) == {"missing": 1}
    assert (report.examples[0].what, report.examples[0].about) == ("missing", lost.item_id)


def test_a_sale_that_nobody_could_have_seen_is_noticed() -> None:
    stored = list(evidence().stored)
    made_up = replace(stored[0], item_id="m00000000000")
    assert wrong(spoiled([*stored, made_up])) == {"extra": 1}
    elsewhere = replace(stored[0], keyword=stored[-1].keyword)
    assert wrong(spoiled([*stored, elsewhere])) == {"extra": 1}


def test_a_sale_that_is_kept_twice_is_noticed() -> None:
    stored = list(evidence().stored)
    assert wrong(spoiled([*stored, stored[0]])) == {"extra": 1}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"price_yen": 1}, "wrong_price"),
        ({"sold_out_at": "2026-05-01 00:00:00"}, "wrong_day"),
        ({"sold_out_at": "2026-06-01"}, "wrong_day"),
        ({"sold_out_at": None}, "wrong_day"),
    ],
)
def test_a_sale_that_is_kept_wrongly_is_noticed(changes: dict[str, Any], told: str) -> None:
    first, *others = evidence().stored
    report = spoiled([replace(first, **changes), *others])
    assert wrong(report) == {told: 1}
    [example] = report.examples
    assert (example.about, example.ours) == (
        first.item_id,
        None if None in changes.values() else str(*changes.values()),
    )


def with_days(*days: Day) -> Report:
    """Judge an answer that tells other days."""
    keyword = FEW[0].keyword
    told = replace(evidence().markets[keyword], days=days)
    markets = {**evidence().markets, keyword: told}
    return judge(replace(evidence(), markets=markets), sales())


def test_a_median_that_differs_is_noticed() -> None:
    first, *others = evidence().markets[FEW[0].keyword].days
    assert first.figures is not None
    dearer = replace(first.figures, median_yen=first.figures.median_yen + 0.5)
    report = with_days(replace(first, figures=dearer), *others)
    assert wrong(report) == {"medians_differing": 1}
    assert report.examples[0].about == first.on.isoformat()
    more = replace(first.figures, count=first.figures.count + 1)
    assert wrong(with_days(replace(first, figures=more), *others)) == {"medians_differing": 1}


def test_a_day_too_few_or_too_many_is_noticed() -> None:
    first, *others = evidence().markets[FEW[0].keyword].days
    assert wrong(with_days(*others)) == {"medians_differing": 1}
    never = replace(first, on=first.on.replace(year=2020))
    assert wrong(with_days(never, first, *others)) == {"medians_differing": 1}


def test_what_an_answer_leaves_out_is_left_out_of_the_truth_as_well() -> None:
    keyword = FEW[0].keyword
    found = evidence().markets[keyword]
    narrow = replace(found.bounds, least_yen=10**6, most_yen=10**7)
    days = tuple(replace(day, figures=None) for day in found.days)
    nothing = replace(found, bounds=narrow, days=days)
    markets = {**evidence().markets, keyword: nothing}
    assert judge(replace(evidence(), markets=markets), sales()).ok


def test_a_watch_that_saw_nothing_is_not_well() -> None:
    nothing = replace(evidence(), requests=[], stored=[], markets={})
    report = judge(nothing, look_again(nothing))
    assert not report.ok
    assert (report.sales_seen, report.sales_true, report.share_seen) == (0, 0, 0.0)


def test_searches_differ_in_kind_and_share_no_item() -> None:
    assert len({one.keyword for one in SETTINGS}) == len(SETTINGS) == 20
    names = ("min_price", "max_price", "exclusions", "category_id")
    assert all(sum(bool(getattr(one, name)) for one in SETTINGS) > 1 for name in names)
    market = Market(VirtualClock(START), SEED)
    wanted = [make_wanted(one) for one in SETTINGS]
    sieves = [Sieve(replace(one, least_yen=0, most_yen=0)) for one in wanted]
    items = market.items().values()
    assert max(sum(sieve.is_fit(item) for sieve in sieves) for item in items) == 1
    shown = [[len(market.search(one.of(side))) for side in (ON_SALE, SOLD)] for one in wanted]
    assert all(sum(counts) for counts in shown)
    assert sum(max(counts) > PAGE_SIZE for counts in shown) >= 3
    assert sum(max(counts) > 3 * PAGE_SIZE for counts in shown) >= 1


def test_the_command_tells_programs_how_it_went(terminal: Terminal) -> None:
    said = terminal.run("sim", "check", "prices", "--days", "0.1", "--products", "2", "--json")
    found = said.json()
    assert found["ok"] is True, found
    assert (found["seed"], found["days"], found["products"]) == (1, 0.1, 2)
    assert (found["missing"], found["extra"], found["medians_differing"]) == (0, 0, 0)
