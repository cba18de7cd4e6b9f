"""What sales are worth: medians, shares, and which prices are left out."""

import random
from collections import Counter
from math import log
from statistics import median

import pytest

from mimawari.watches.prices import figures
from mimawari.watches.prices.figures import LEAST_SALES, Step

USUAL = [900, 950, 980, 1000, 1000, 1050, 1100, 1200, 1300]


def test_figures_are_those_of_the_ordered_prices() -> None:
    found = figures.make_figures([100, 200, 300, 400])
    assert found is not None
    assert (found.count, found.min_yen, found.max_yen) == (4, 100, 400)
    assert (found.p25_yen, found.median_yen, found.p75_yen) == (175, 250, 325)


def test_of_one_sale_all_figures_are_its_price() -> None:
    found = figures.make_figures([700])
    assert found is not None
    assert {found.min_yen, found.p25_yen, found.median_yen, found.p75_yen, found.max_yen} == {700}
    assert figures.make_figures([]) is None


@pytest.mark.parametrize("price", [1, 100, 5000, 9_999_999])
def test_bundles_junk_and_mistakes_are_left_out_with_a_reason(price: int) -> None:
    bounds = figures.find_bounds(sorted([*USUAL, price]))
    reason = bounds.find_outlier(price)
    assert reason is not None
    assert f"{price:,} yen" in reason
    assert "robust deviations around the median" in reason
    assert [one for one in USUAL if bounds.find_outlier(one)] == []
    assert bounds.cut(sorted([*USUAL, price])) == USUAL


def test_a_third_of_junk_does_not_move_what_is_usual() -> None:
    junk = [10, 20, 30, 40]
    assert figures.find_bounds(sorted([*USUAL, *junk])).cut(sorted([*junk, *USUAL])) == USUAL


def test_equal_prices_leave_room_for_others() -> None:
    bounds = figures.find_bounds([1000] * 20)
    assert bounds.find_outlier(1200) is None
    assert bounds.find_outlier(3000) is not None


def test_of_few_sales_none_is_left_out_and_it_says_so() -> None:
    bounds = figures.find_bounds([1] * (LEAST_SALES - 2) + [9_999_999])
    assert (bounds.least_yen, bounds.most_yen) == (None, None)
    assert "7 of 8 sales cannot tell" in bounds.reason


@pytest.mark.parametrize("count", [8, 9, 101, 1000])
def test_the_spread_is_the_median_distance_of_ratios(count: int) -> None:
    chance = random.Random(count)
    prices = sorted(int(2000 * chance.lognormvariate(0, 0.6)) for _ in range(count))
    bounds = figures.find_bounds(prices)
    middle = log(median(prices))
    distances = sorted(abs(log(price) - middle) for price in prices)
    spread = 1.4826 * distances[(count + 1) // 2 - 1]
    assert bounds.least_yen is not None
    assert bounds.most_yen is not None
    assert log(bounds.least_yen) == pytest.approx(middle - 3.5 * spread, abs=0.05)
    assert log(bounds.most_yen) == pytest.approx(middle + 3.5 * spread, abs=0.05)


def test_a_price_of_nothing_is_no_reason_to_fail() -> None:
    assert figures.find_bounds([0] * 20).find_outlier(1) is None


def test_days_to_sell_are_told_in_steps() -> None:
    found = figures.make_days_to_sell(Counter([0, 0, 5, 23, 24, 100, 900]))
    assert found is not None
    assert (found.count, found.median_days) == (7, 23 / 24)
    assert found.steps[:4] == (
        Step(within_hours=1, count=2),
        Step(within_hours=6, count=1),
        Step(within_hours=24, count=1),
        Step(within_hours=72, count=1),
    )
    assert found.steps[-1] == Step(within_hours=None, count=1)
    assert sum(step.count for step in found.steps) == 7
    assert figures.make_days_to_sell({}) is None
