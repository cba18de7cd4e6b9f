"""What could be seen to be sold on the market: told from its truth, look by look."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest

from mimawari.sim.sites.mercari.lives import KEPT, Event, Kind, Status, What
from mimawari.sim.sites.mercari.market import SOLD, Market, Wanted
from mimawari.sim.sites.mercari.observed import Moments
from mimawari.sim.sites.mercari.sales import Sale, Sales

SEED = 5
START = datetime(2026, 1, 3, tzinfo=UTC)
DAY, SECOND = timedelta(days=1), timedelta(seconds=1)
UNTIL = START + 12 * DAY
BUSY = "ラグナブルー"
SIDES = ([Status.ON_SALE], [Status.SOLD_OUT, Status.TRADING])
PAGES = 4

Life = list[Event]


@cache
def lives() -> list[Life]:
    """List all that happens to each item of the search, as far as it begins after the start."""
    clock = Moments(START)
    market = Market(clock, SEED)
    found: dict[str, Life] = {}
    while clock.at < UNTIL:
        since = int(clock.at.timestamp())
        clock.at += DAY
        for event in market.events(since):
            if event.what is What.LISTED and BUSY in event.item.goods.title:
                found[event.item.goods.id] = []
            if event.item.goods.id in found:
                found[event.item.goods.id].append(event)
    return list(found.values())


def find_life(*whats: What, where: Callable[[Life], bool] = lambda _: True) -> Life:
    """Find an item to which these things happen, one after another, at the end of what does."""
    wanted = list(whats)
    return next(
        life
        for life in lives()
        if [event.what for event in life][-len(wanted) :] == wanted and where(life)
    )


def at(event: Event, span: timedelta = SECOND) -> datetime:
    """Return a time after an event."""
    return datetime.fromtimestamp(event.at, UTC) + span


def walk(moment: datetime, keyword: str = BUSY) -> Iterator[dict[str, Any]]:
    """Write the lines of the log of a walk over the pages of both sides."""
    for statuses in SIDES:
        for page in range(PAGES):
            searched = {"keyword": keyword, "statuses": statuses, "page": page}
            yield {"at": moment.isoformat(), "path": "/v2", "query": "", "searched": searched}


def own_page(moment: datetime, item_id: str) -> dict[str, Any]:
    """Write the line of the log of an item's own page."""
    path, query = "/items/get", f"id={item_id}&include_auction=true"
    if not item_id.startswith("m"):
        path, query = f"/v1/marketplaces/shops/products/{item_id}", "view=FULL"
    return {"at": moment.isoformat(), "path": path, "query": query, "searched": None}


def replay(*lines: dict[str, Any], until: datetime | None = None, **given: Any) -> Sales:
    """Make looks again, and count true sales until the last of them."""
    end = until or datetime.fromisoformat(lines[-1]["at"])
    return Sales(SEED, [Wanted(keyword=BUSY, **given)], lines, end)


def sale_of(sales: Sales, life: Life) -> Sale | None:
    """Find what was seen of an item's sale."""
    goods_id = life[0].item.goods.id
    return next((one for one in sales.list_seen() if one.item_id == goods_id), None)


def is_kind(kind: Kind) -> Callable[[Life], bool]:
    return lambda life: life[0].item.goods.kind is kind


@pytest.mark.parametrize("kind", [Kind.ORDINARY, Kind.AUCTION])
def test_a_trade_that_is_read_while_it_goes_on_has_the_moment_of_its_purchase(kind: Kind) -> None:
    life = find_life(What.BOUGHT, What.SOLD_OUT, where=is_kind(kind))
    bought, sold_out = life[-2:]
    item_id = bought.item.goods.id
    early = sale_of(replay(*walk(at(bought)), own_page(at(bought), item_id)), life)
    assert early is not None
    assert early.sold_at == early.bought_at == at(bought, 0 * SECOND)
    assert (early.price_yen, early.is_rough) == (bought.item.price_yen, False)
    late = sale_of(replay(*walk(at(bought)), own_page(at(sold_out), item_id)), life)
    assert late is not None
    assert late.sold_at == at(sold_out, 0 * SECOND) > late.bought_at


def test_a_sale_whose_own_page_was_never_read_has_no_time() -> None:
    life = find_life(What.BOUGHT, where=is_kind(Kind.SHOPS))
    sale = sale_of(replay(*walk(at(life[-1]))), life)
    assert sale is not None
    assert sale.sold_at is None


def test_an_own_page_tells_of_a_sale_that_no_search_has_shown() -> None:
    life = find_life(What.LISTED, What.BOUGHT, where=is_kind(Kind.SHOPS))
    listed, bought = life
    lines = [*walk(at(listed))]
    assert sale_of(replay(*lines), life) is None
    lines.append(own_page(at(bought), bought.item.goods.id))
    sale = sale_of(replay(*lines), life)
    assert sale is not None
    assert sale.sold_at == at(bought, 0 * SECOND)


@pytest.mark.parametrize("kind", [Kind.ORDINARY, Kind.SHOPS])
def test_what_is_on_sale_again_was_not_sold(kind: Kind) -> None:
    def is_called_off(life: Life) -> bool:
        whats = [event.what for event in life]
        return is_kind(kind)(life) and whats[:3] == [What.LISTED, What.BOUGHT, What.RELISTED]

    life = next(filter(is_called_off, lives()))
    bought, again = life[1:3]
    lines = [*walk(at(bought)), own_page(at(bought), bought.item.goods.id)]
    sales = replay(*lines)
    assert sale_of(sales, life) is not None
    sales = replay(*lines, *walk(at(again)))
    assert sale_of(sales, life) is None
    assert sales.taken_back >= 1
    sales = replay(*lines, own_page(at(again), bought.item.goods.id))
    assert (sale_of(sales, life), sales.taken_back) == (None, 1)


def test_a_sale_whose_page_is_gone_has_the_day_of_the_walk_that_showed_it() -> None:
    life = find_life(What.LISTED, What.BOUGHT, where=is_kind(Kind.SHOPS))
    bought = life[-1]
    lines = [*walk(at(bought))]
    lines[-1]["at"] = at(bought, 20 * SECOND).isoformat()
    forgotten = at(bought, timedelta(seconds=KEPT + 1))
    sale = sale_of(replay(*lines, own_page(forgotten, bought.item.goods.id)), life)
    assert sale is not None
    assert (sale.sold_at, sale.is_rough) == (at(bought, 20 * SECOND), True)


def test_what_was_on_sale_and_is_gone_or_paused_was_not_sold() -> None:
    life = find_life(What.LISTED, What.REMOVED, where=is_kind(Kind.ORDINARY))
    item_id = life[0].item.goods.id
    sales = replay(*walk(at(life[0])), own_page(at(life[1]), item_id))
    assert (sale_of(sales, life), sales.taken_back) == (None, 0)


def test_what_has_left_the_bounds_of_its_search_is_no_sale_of_it() -> None:
    life = find_life(
        What.LISTED, What.REPRICED, What.BOUGHT, What.SOLD_OUT, where=is_kind(Kind.ORDINARY)
    )
    listed, repriced, bought, _ = life
    lines = [*walk(at(listed)), own_page(at(bought), bought.item.goods.id)]
    assert sale_of(replay(*lines), life) is not None
    assert repriced.item.price_yen < listed.item.price_yen
    assert sale_of(replay(*lines, least_yen=listed.item.price_yen), life) is None


def test_what_is_searched_for_otherwise_is_not_seen() -> None:
    life = find_life(What.BOUGHT, What.SOLD_OUT)
    item = life[-1].item
    lines = [*walk(at(life[-2])), own_page(at(life[-2]), item.goods.id)]
    member = item.goods.title.split()[-1]
    assert sale_of(replay(*lines), life) is not None
    assert sale_of(replay(*lines, exclude=member), life) is None
    assert sale_of(replay(*lines, categories=frozenset({item.goods.category_id})), life) is not None
    assert sale_of(replay(*lines, categories=frozenset({1})), life) is None
    assert sale_of(replay(*lines, most_yen=item.price_yen - 1), life) is None


def test_true_sales_are_counted_as_time_passes_and_those_that_were_seen_with_them() -> None:
    bought = [
        event
        for life in lives()
        for event in life
        if event.what is What.BOUGHT and event.at <= UNTIL.timestamp()
    ]
    first = [*walk(START)]
    unwatched = replay(*first, until=UNTIL)
    # What was listed before the start is bought as well.
    assert unwatched.true > len(bought) > 100
    assert unwatched.true_seen == 0
    often = [line for hours in range(0, 12 * 24, 6) for line in walk(START + hours * DAY / 24)]
    watched = replay(*often, until=UNTIL)
    assert watched.true == unwatched.true
    assert watched.true * 0.9 < watched.true_seen < watched.true
    assert watched.walks == 48
    assert replay(*first, until=START + DAY).true < unwatched.true / 5


def test_nothing_seen_is_no_sale() -> None:
    sales = replay(until=START)
    assert (sales.list_seen(), sales.true, sales.walks) == ([], 0, 0)
    assert {event.item.status for life in lives() for event in life} >= SOLD
