"""What the simulated market promises: one truth by seed and time, lively and full at once."""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from statistics import mean, median
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.items import CATEGORIES, FRANCHISES, HOSTILE, WARES
from mimawari.sim.sites.mercari.lives import KEPT, LONGEST, NO_PRICE_YEN, Event, Kind, Status, What
from mimawari.sim.sites.mercari.market import Market, Wanted

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
BUSIEST = FRANCHISES[0].keyword
LEGAL = {
    What.LISTED: (None, {Status.ON_SALE}),
    What.REPRICED: (Status.ON_SALE, {Status.ON_SALE}),
    What.BID: (Status.ON_SALE, {Status.ON_SALE}),
    What.BOUGHT: (Status.ON_SALE, {Status.TRADING, Status.SOLD_OUT}),
    What.SOLD_OUT: (Status.TRADING, {Status.SOLD_OUT}),
    What.STOPPED: (Status.ON_SALE, {Status.STOP}),
    What.RESUMED: (Status.STOP, {Status.ON_SALE}),
    What.REMOVED: (Status.ON_SALE, {Status.REMOVED}),
}


def market_at(at: datetime, seed: int = 1) -> Market:
    return Market(VirtualClock(at), seed)


@pytest.fixture(scope="module")
def market() -> Market:
    return market_at(START)


@pytest.fixture(scope="module")
def fortnight() -> list[Event]:
    """Everything that happened in two weeks, watched every three hours."""
    clock = VirtualClock(START)
    market, found = Market(clock, 1), list[Event]()
    for _ in range(14 * 8):
        since = int(clock.now().timestamp())
        clock.step(HOUR * 3)
        found += market.events(since)
    return found


@given(steps=st.lists(st.integers(0, 40_000), max_size=6))
@settings(max_examples=3, deadline=None)
def test_how_often_it_is_asked_changes_nothing(steps: list[int]) -> None:
    clock = VirtualClock(START)
    busy = Market(clock, 1)
    for step in steps:
        clock.step(timedelta(seconds=step))
        busy.search(Wanted(keyword=BUSIEST))
        busy.truth({"view": "items", "side": "sold"})
    calm = market_at(clock.now())
    assert busy.items() == calm.items()
    assert busy.events(0) == calm.events(0)
    assert busy.truth({}) == calm.truth({})


@pytest.mark.parametrize("days", [1, 21])
def test_a_clock_that_jumps_far_or_back_finds_the_market_as_it_is_then(days: int) -> None:
    clock = VirtualClock(START)
    market = Market(clock, 1)
    before = dict(market.items())
    clock.step(timedelta(days=days))
    assert market.items() == market_at(clock.now()).items()
    clock.step(timedelta(days=-days))
    assert market.items() == before


def test_another_seed_is_another_market(market: Market) -> None:
    other = market_at(START, seed=2)
    assert not market.items().keys() & other.items().keys()


def test_where_only_some_franchises_are_traded_all_else_about_them_is_the_same(
    market: Market,
) -> None:
    some = FRANCHISES[-3:]
    smaller = Market(VirtualClock(START), 1, some)
    keys = {one.key for one in some}
    assert {item.goods.franchise for item in smaller.items().values()} == keys
    both = {key: item for key, item in market.items().items() if item.goods.franchise in keys}
    assert smaller.items() == both


def test_the_market_is_full_from_its_first_moment(market: Market) -> None:
    rates = {entry["key"]: entry for entry in market.truth({})["franchises"]}
    assert len(rates) == len(FRANCHISES) >= 12
    busiest = rates[FRANCHISES[0].key]
    assert busiest["on_sale"] >= 300
    assert busiest["sold"] >= 300
    assert all(entry["on_sale"] and entry["sold"] for entry in rates.values())
    assert sum(entry["on_sale"] + entry["sold"] for entry in rates.values()) > 5000


def test_a_month_passes_and_the_market_grows_no_larger() -> None:
    clock = VirtualClock(START)
    market = Market(clock, 1)
    sizes = []
    for _ in range(5):
        clock.step(timedelta(days=6))
        sizes.append((len(market.items()), len(market.events(0))))
    for most, least in ((max(column), min(column)) for column in zip(*sizes, strict=True)):
        assert most < 1.6 * least


def test_every_item_goes_through_legal_states_in_order(fortnight: list[Event]) -> None:
    latest: dict[str, Event] = {}
    for event in fortnight:
        item_id = event.item.goods.id
        before = latest.get(item_id)
        assert event.item.updated == event.at
        if event.what is What.LISTED:
            assert before is None
            assert event.at == event.item.goods.created
        if before is not None:
            assert before.at <= event.at
            assert before.item.goods == event.item.goods
            if event.what is What.RELISTED:
                assert before.item.status in {Status.TRADING, Status.SOLD_OUT}
            else:
                assert before.item.status is LEGAL[event.what][0]
        allowed = LEGAL.get(event.what, (None, {Status.ON_SALE}))[1]
        assert event.item.status in allowed
        latest[item_id] = event
    assert {event.what for event in fortnight} == set(What)


def test_events_come_in_the_order_of_time_and_none_twice(fortnight: list[Event]) -> None:
    times = [event.at for event in fortnight]
    assert times == sorted(times)
    keys = Counter((event.at, event.item.goods.id, event.what, event.item) for event in fortnight)
    assert max(keys.values()) == 1


def test_nothing_happens_to_an_item_after_its_longest_life(fortnight: list[Event]) -> None:
    assert max(event.at - event.item.goods.created for event in fortnight) < LONGEST


def test_evenings_are_busy_and_nights_are_not(fortnight: list[Event]) -> None:
    for what in (What.LISTED, What.BOUGHT):
        hours = Counter((event.at // 3600 + 9) % 24 for event in fortnight if event.what is what)
        evening = mean(hours[hour] for hour in (20, 21, 22))
        night = mean(hours[hour] for hour in (3, 4, 5))
        assert evening > 4 * night


def test_each_franchise_lists_and_sells_at_its_own_pace(fortnight: list[Event]) -> None:
    listed: Counter[str] = Counter()
    waited: dict[str, list[int]] = defaultdict(list)
    for event in fortnight:
        if event.what is What.LISTED:
            listed[event.item.goods.franchise] += 1
        if event.what is What.BOUGHT:
            waited[event.item.goods.franchise].append(event.at - event.item.goods.created)
    for one in FRANCHISES[:8]:
        assert 0.6 < listed[one.key] / (14 * one.listed_a_day) < 2.2
    quick, slow = (
        median(waited[one.key])
        for one in sorted(FRANCHISES[:8], key=lambda one: one.days_to_sell)
        if one.key in {"ghost", "bento"}
    )
    assert quick * 1.5 < slow


def test_what_is_cheap_for_its_kind_sells_sooner(fortnight: list[Event]) -> None:
    fair = {one.key: one.price_level for one in FRANCHISES}
    usual = {ware.category_id: ware.price_yen for ware in WARES}
    waits: dict[bool, list[int]] = {True: [], False: []}
    for event in fortnight:
        goods = event.item.goods
        if event.what is What.BOUGHT and goods.kind is Kind.ORDINARY:
            ratio = event.item.price_yen / (usual[goods.category_id] * fair[goods.franchise])
            waits[ratio < 1].append(event.at - event.item.updated + event.at - goods.created)
    sold = {cheap: len(found) for cheap, found in waits.items()}
    assert sold[True] > sold[False]


def test_some_days_are_booms() -> None:
    clock = VirtualClock(START)
    market = Market(clock, 1)
    sold: dict[str, list[int]] = defaultdict(list)
    for _ in range(30):
        clock.step(timedelta(days=1))
        for entry in market.truth({})["franchises"][:6]:
            sold[entry["key"]].append(entry["sold_day"])
    assert max(max(days) / median(days) for days in sold.values()) > 1.8


def test_ids_have_the_real_shapes_and_are_never_used_twice(fortnight: list[Event]) -> None:
    created: dict[str, int] = {}
    for event in fortnight:
        goods = event.item.goods
        assert created.setdefault(goods.id, goods.created) == goods.created
        if goods.kind is Kind.SHOPS:
            assert len(goods.id) == 22
            assert goods.id.isascii()
            assert goods.id.isalnum()
        else:
            assert goods.id[0] == "m"
            assert len(goods.id) == 12
            assert goods.id[1:].isdigit()


def test_all_kinds_are_there_and_have_their_prices(market: Market) -> None:
    kinds = Counter(item.goods.kind for item in market.items().values())
    assert set(kinds) == set(Kind)
    assert kinds[Kind.ORDINARY] > sum(kinds.values()) / 2
    for item in market.items().values():
        is_no_price = item.goods.kind is Kind.NO_PRICE
        assert (item.price_yen == NO_PRICE_YEN) is is_no_price
        assert item.price_yen >= 300
        assert item.goods.category_id in CATEGORIES
        assert bool(item.goods.deadline) is (item.goods.kind is Kind.AUCTION)
        if item.goods.kind is Kind.AUCTION:
            assert item.price_yen > item.goods.first_price_yen or not item.bids


def test_every_title_names_its_franchise_and_hostile_ones_are_among_them(
    fortnight: list[Event],
) -> None:
    names = {one.key: one for one in FRANCHISES}
    titles = set()
    for event in fortnight:
        goods = event.item.goods
        assert names[goods.franchise].keyword in goods.title
        assert goods.title == goods.title.strip()
        titles.add(goods.title)
    for sign in (
        "の画像",
        "500円OFF",
        '"',
        "<b>",
        "🎉",
        "\uff11",
        "現在 ¥300",
        "のサムネイル",
        "\u202e",
    ):
        assert any(sign in title for title in titles), sign
    assert max(map(len, titles)) > 300
    assert len(HOSTILE) >= 10


def test_no_keyword_finds_the_goods_of_two_franchises(market: Market) -> None:
    for one in FRANCHISES:
        found = {item.goods.franchise for item in market.search(Wanted(keyword=one.keyword))}
        assert found == {one.key}
        assert one.keyword in one.name


@pytest.mark.parametrize("side", ["on_sale", "sold", "all"])
def test_the_truth_tells_all_items_of_a_side_in_full(market: Market, side: str) -> None:
    told = market.truth({"view": "items", "keyword": BUSIEST, "side": side})["items"]
    allowed = {
        "on_sale": {"on_sale"},
        "sold": {"trading", "sold_out"},
        "all": {"on_sale", "trading", "sold_out"},
    }[side]
    expected = {
        item.goods.id
        for item in market.items().values()
        if item.goods.franchise == FRANCHISES[0].key and item.status in allowed
    }
    assert {entry["id"] for entry in told} == expected
    assert len(told) == len(expected)
    names = {"id", "title", "status", "price_yen", "kind", "created_at", "updated_at", "bids"}
    assert all(names < entry.keys() for entry in told)


def test_the_truth_tells_what_happened_since_a_time() -> None:
    clock = VirtualClock(START)
    market = Market(clock, 1)
    clock.step(timedelta(hours=3))
    since = clock.now()
    clock.step(HOUR)
    told = market.truth({"view": "events", "since": since.isoformat()})["events"]
    assert told
    assert all(since < datetime.fromisoformat(entry["at"]) <= clock.now() for entry in told)
    assert market.truth({"view": "events", "since": clock.now().isoformat()})["events"] == []
    naive = market.truth({"view": "events", "since": since.replace(tzinfo=None).isoformat()})
    assert naive["events"] == told


def test_rates_are_what_the_events_add_up_to() -> None:
    clock = VirtualClock(START)
    market = Market(clock, 1)
    clock.step(timedelta(days=3))
    events = market.events(int((clock.now() - timedelta(days=1)).timestamp()))
    for entry in market.truth({"view": "rates"})["franchises"]:
        own = [event for event in events if event.item.goods.franchise == entry["key"]]
        assert entry["listed_day"] == sum(event.what is What.LISTED for event in own)
        assert entry["sold_day"] == sum(event.what is What.BOUGHT for event in own)


@pytest.mark.parametrize(
    "query",
    [
        {"view": "secrets"},
        {"view": "items", "side": "left"},
        {"view": "events", "since": "yesterday"},
        {"view": "events", "since": ""},
    ],
)
def test_a_question_about_the_truth_that_makes_no_sense_is_refused(
    market: Market, query: dict[str, str]
) -> None:
    with pytest.raises(BadInput):
        market.truth(query)


@pytest.mark.parametrize(
    ("keyword", "exclude"),
    [
        ("星くず郵便 アクリル", ""),
        ("ｱｸﾘﾙ", ""),
        ("STARDUST post", ""),
        ("フィギュア", "1/7"),
        ("tシャツ lサイズ", "星くず郵便 ビリリカ"),
        ("缶バッジ　限定", ""),
    ],
)
def test_a_search_needs_every_word_and_none_of_the_excluded(
    market: Market, keyword: str, exclude: str
) -> None:
    found = market.search(Wanted(keyword=keyword, exclude=exclude))
    assert found
    by_hand = [
        item
        for item in market.items().values()
        if item.status in {Status.ON_SALE, Status.TRADING, Status.SOLD_OUT}
        and all(plain(word) in plain(item.goods.title) for word in keyword.split())
        and not any(plain(word) in plain(item.goods.title) for word in exclude.split())
    ]
    assert Counter(found) == Counter(by_hand)


def plain(text: str) -> str:
    return normalize("NFKC", text).casefold()


def test_prices_and_drawers_narrow_a_search(market: Market) -> None:
    every = market.search(Wanted())
    some = market.search(Wanted(least_yen=1000, most_yen=2000))
    assert Counter(some) == Counter(item for item in every if 1000 <= item.price_yen <= 2000)
    inner = market.search(Wanted(categories=frozenset({5121})))
    outer = market.search(Wanted(categories=frozenset({5120})))
    assert {item.goods.category_id for item in inner} == {5121}
    assert {item.goods.category_id for item in outer} == {5121, 5122, 5123, 5124, 5125, 5126}
    assert len(market.search(Wanted(categories=frozenset({5000})))) == len(market.search(Wanted()))
    assert market.search(Wanted(categories=frozenset({1}))) == []


@pytest.mark.parametrize("one", FRANCHISES[:6], ids=lambda one: one.key)
def test_newest_first_is_only_rough(market: Market, one: Any) -> None:
    found = market.search(Wanted(keyword=one.keyword))
    created = [item.goods.created for item in found]
    wrong = sum(left < right for left, right in pairwise(created))
    assert 0.1 < wrong / len(created) < 0.45
    # Rough is not random: nothing is far from where it belongs.
    places = {item.goods.id: place for place, item in enumerate(found)}
    exact = sorted(found, key=lambda item: item.goods.created, reverse=True)
    assert max(abs(places[item.goods.id] - place) for place, item in enumerate(exact)) < 60


def test_an_order_by_price_is_exact(market: Market) -> None:
    for descending in (True, False):
        found = market.search(Wanted(sort="price", descending=descending))
        prices = [item.price_yen for item in found]
        assert prices == sorted(prices, reverse=descending)


def test_a_sold_item_is_remembered_for_a_while_and_a_removed_one_is_gone_at_once() -> None:
    clock = VirtualClock(START)
    market = Market(clock, 1)
    clock.step(HOUR * 12)
    events = market.events(int(START.timestamp()))
    sold = next(event for event in events if event.what is What.SOLD_OUT).item.goods.id
    gone = next(event for event in events if event.what is What.REMOVED).item.goods.id
    assert market.find(gone) is None
    clock.step(timedelta(seconds=KEPT) - HOUR * 13)
    assert market.find(sold) is not None
    clock.step(HOUR * 13)
    assert market.find(sold) is None
