"""What happens to items between two crawls, how heavy IPs weigh, and what is worth telling."""

from datetime import UTC, datetime, timedelta
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.watches.hot import rules
from mimawari.watches.hot.models import (
    SALES,
    AlertKind,
    Flow,
    ItemState,
    Kind,
    Pace,
    Prices,
    Seen,
    Status,
    Thresholds,
)
from mimawari.watches.hot.rules import Brought
from tests.hot.crawling import on_sale, seen, sold

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LATER = NOW + timedelta(hours=2)
PACE = Pace(base=timedelta(hours=2), least=timedelta(hours=1), most=timedelta(hours=2))
LIMITS = Thresholds(outflow=50, liquidity_low=0.3, liquidity_high=2.0, price_drop=0.2, samples=10)


def known(
    status: Status = Status.AVAILABLE, price: int | None = 1000, at: datetime = NOW
) -> ItemState:
    is_sold = status is Status.SOLD
    return ItemState(
        status=status, price_yen=price, sold_at=at if is_sold else None, last_seen_at=at
    )


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (None, seen("a"), Kind.NEW_LISTING),
        (None, seen("a", sold=True), Kind.NEW_SOLD),
        (None, seen("a", None), Kind.NEW_LISTING),
        (known(), seen("a"), None),
        (known(), seen("a", sold=True), Kind.SOLD),
        (known(), seen("a", 900), Kind.PRICE_CHANGE),
        (known(), seen("a", None), None),
        (known(price=None), seen("a", 900), None),
        (known(), seen("a", 900, sold=True), Kind.SOLD),
        (known(Status.SOLD), seen("a", sold=True), None),
        (known(Status.SOLD), seen("a", 900, sold=True), None),
        (known(Status.SOLD), seen("a"), Kind.RELISTED),
        (known(Status.SOLD), seen("a", 900), Kind.RELISTED),
    ],
)
def test_an_item_changes_as_the_table_says(
    before: ItemState | None, now: Seen, kind: Kind | None
) -> None:
    compared = rules.compare({"a": before} if before else {}, [now], LATER)
    assert [change.kind for change in compared.changes] == ([kind] if kind else [])
    assert compared.states["a"].status is now.status
    assert compared.states["a"].last_seen_at == LATER


def test_a_change_tells_both_prices() -> None:
    (change,) = rules.compare({"a": known(price=1000)}, [seen("a", 800)], LATER).changes
    assert (change.price_before_yen, change.price_yen) == (1000, 800)


def test_a_price_that_is_not_shown_is_the_one_we_knew() -> None:
    compared = rules.compare({"a": known(price=1000)}, [seen("a", None, sold=True)], LATER)
    assert compared.states["a"].price_yen == 1000
    assert compared.changes[0].price_yen == 1000


def test_what_an_older_crawl_saw_of_a_known_item_is_no_news() -> None:
    found = [seen("a"), seen("b")]
    compared = rules.compare({"a": known(Status.SOLD, at=LATER)}, found, NOW)
    assert [(change.source_id, change.kind) for change in compared.changes] == [
        ("b", Kind.NEW_LISTING)
    ]
    assert compared.states.keys() == {"b"}


def test_an_item_that_is_sold_while_the_pages_are_read_came_and_went() -> None:
    compared = rules.compare({}, [*on_sale("a"), *sold("a")], LATER)
    assert [change.kind for change in compared.changes] == [Kind.NEW_LISTING, Kind.SOLD]
    assert compared.states["a"].status is Status.SOLD
    assert compared.states["a"].sold_at == LATER


def test_when_an_item_was_sold_is_kept_while_it_stays_sold() -> None:
    compared = rules.compare({"a": known(Status.SOLD)}, sold("a"), LATER)
    assert compared.states["a"].sold_at == NOW


items = st.builds(
    seen,
    st.sampled_from("abcdef"),
    st.one_of(st.none(), st.integers(300, 2000)),
    sold=st.booleans(),
)


@given(st.lists(st.lists(items, max_size=12), max_size=6))
def test_counts_are_those_of_somebody_who_looks_at_each_item_in_turn(
    crawls: list[list[Seen]],
) -> None:
    states: dict[str, ItemState] = {}
    inflow = outflow = true_inflow = true_outflow = 0
    was_sold: dict[str, bool] = {}
    for number, crawl in enumerate(crawls):
        compared = rules.compare(states, crawl, NOW + timedelta(hours=number))
        states |= compared.states
        inflow += sum(change.kind is Kind.NEW_LISTING for change in compared.changes)
        outflow += sum(change.kind in SALES for change in compared.changes)
        for item in crawl:
            is_sold = item.status is Status.SOLD
            true_inflow += item.source_id not in was_sold and not is_sold
            true_outflow += is_sold and not was_sold.get(item.source_id, False)
            was_sold[item.source_id] = is_sold
    assert (inflow, outflow) == (true_inflow, true_outflow)
    assert {one: state.status is Status.SOLD for one, state in states.items()} == was_sold


@pytest.mark.parametrize(
    ("weight", "hours"),
    [(4.0, 1), (2.0, 1), (1.6, 1.25), (1.0, 2), (0.5, 2), (0.0, 2), (-3, 2)],
)
def test_the_interval_is_the_base_by_the_weight_within_bounds(weight: float, hours: float) -> None:
    assert rules.interval(weight, PACE) == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("inflow", "outflow", "pages", "weight", "after"),
    [
        (501, 0, (5, 5), 1.0, 1.25),
        (0, 501, (5, 5), 1.0, 1.25),
        (500, 500, (5, 5), 1.0, 1.0),
        (249, 14, (5, 5), 1.0, 0.9),
        (250, 14, (5, 5), 1.0, 1.0),
        (249, 15, (5, 5), 1.0, 1.0),
        (300, 20, (5, 5), 2.0, 1.9),
        (300, 20, (5, 5), 1.05, 1.0),
        (300, 20, (5, 5), 0.5, 0.6),
        (300, 20, (5, 5), 0.95, 1.0),
        (101, 0, (1, 1), 1.0, 1.25),
        (100, 3, (1, 1), 1.0, 1.0),
        (49, 2, (1, 1), 1.0, 0.9),
        (0, 201, (8, 2), 1.0, 1.25),
        (9999, 0, (5, 5), 4.0, 4.0),
        (0, 0, (5, 5), 0.1, 0.1),
    ],
)
def test_the_weight_follows_what_the_pages_bring(
    inflow: int, outflow: int, pages: tuple[int, int], weight: float, after: float
) -> None:
    brought = Brought(inflow=inflow, outflow=outflow, pages_on_sale=pages[0], pages_sold=pages[1])
    assert rules.spec_weight(weight, brought) == after


@pytest.mark.parametrize(
    ("inflow", "outflow", "weight", "after"),
    [
        (60, 0, 1.0, 1.0),
        (0, 60, 1.0, 1.0),
        (90, 30, 1.0, 1.5),
        (0, 0, 1.0, 0.5),
        (600, 600, 1.0, 4.0),
        (600, 0, 0.2, 0.8),
        (0, 0, 0.15, 0.1),
    ],
)
def test_the_other_rule_fills_a_tenth_of_the_pages_with_news(
    inflow: int, outflow: int, weight: float, after: float
) -> None:
    brought = Brought(inflow=inflow, outflow=outflow, pages_on_sale=5, pages_sold=5)
    assert rules.fill_weight(weight, brought) == after


def test_ten_steps_down_and_back_are_where_they_began() -> None:
    weight = 1.0
    still = Brought(inflow=0, outflow=0, pages_on_sale=5, pages_sold=5)
    usual = Brought(inflow=300, outflow=100, pages_on_sale=5, pages_sold=5)
    for _ in range(5):
        weight = rules.spec_weight(weight, still)
    assert weight == 0.5
    for _ in range(9):
        weight = rules.spec_weight(weight, usual)
    assert weight == 1.0


def test_the_scores_are_those_of_the_first_implementation() -> None:
    assert rules.liquidity(0, 5) is None
    assert rules.liquidity(10, 5) == 0.5
    assert rules.hot_score(0, 0) == 0
    assert rules.hot_score(9, 19) == pytest.approx(20 / 10 * log(20))


def test_prices_are_described_exactly() -> None:
    assert rules.summarize([]) == Prices()
    assert rules.summarize([300]) == Prices(
        samples=1, average_yen=300, median_yen=300, least_yen=300, most_yen=300, stddev_yen=0
    )
    found = rules.summarize([1000, 3000, 2000, 6000])
    assert (found.samples, found.average_yen, found.median_yen) == (4, 3000, 2500)
    assert (found.least_yen, found.most_yen) == (1000, 6000)
    assert found.stddev_yen == pytest.approx(1870.8287)


@pytest.mark.parametrize(
    ("inflow", "outflow", "kinds"),
    [
        (50, 49, set()),
        (50, 50, {AlertKind.HIGH_OUTFLOW}),
        (100, 29, {AlertKind.LOW_LIQUIDITY}),
        (100, 30, set()),
        (9, 0, set()),
        (10, 0, {AlertKind.LOW_LIQUIDITY}),
        (10, 21, {AlertKind.SURGE}),
        (10, 20, set()),
        (0, 49, set()),
        (20, 60, {AlertKind.HIGH_OUTFLOW, AlertKind.SURGE}),
    ],
)
def test_an_hour_is_worth_telling_from_the_thresholds_on(
    inflow: int, outflow: int, kinds: set[AlertKind]
) -> None:
    found = rules.find_alerts(Flow(inflow=inflow, outflow=outflow), None, LIMITS)
    assert {finding.kind for finding in found} == kinds


@pytest.mark.parametrize(
    ("median", "samples", "usual", "tells"),
    [
        (800, 10, 1000.0, True),
        (801, 10, 1000.0, False),
        (500, 9, 1000.0, False),
        (500, 10, None, False),
        (1500, 10, 1000.0, False),
    ],
)
def test_a_price_drop_is_told_against_what_is_usual(
    median: float, samples: int, usual: float | None, *, tells: bool
) -> None:
    flow = Flow(inflow=50, outflow=40, prices=Prices(samples=samples, median_yen=median))
    kinds = [finding.kind for finding in rules.find_alerts(flow, usual, LIMITS)]
    assert kinds == ([AlertKind.PRICE_DROP] if tells else [])


@pytest.mark.parametrize("kind", list(AlertKind))
def test_every_alert_has_a_sentence(kind: AlertKind) -> None:
    assert "(" in rules.describe(kind, 0.25, 0.2, 12)
