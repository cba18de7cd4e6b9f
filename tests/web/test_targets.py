"""A target price that a person sets is told by the API, on the pages and as a message."""

import re
from datetime import timedelta
from statistics import median

import pytest

from mimawari.sim.sites.mercari.items import FRANCHISES, Franchise
from mimawari.sim.sites.mercari.market import ON_SALE, SOLD, Wanted
from mimawari.sim.sites.mercari.site import MarketSite
from tests.web.at_work import Stage

TARGETS = ((8, 20), (12, 50), (13, 90))
"""Which product, and the target in percent of what such things sell for."""
DOUBT = {"en": "doubtful", "ja": "相場から外れ"}


def find_prices(stage: Stage, franchise: Franchise) -> tuple[float, dict[str, int]]:
    """Return for how much something usually sells, and what is on sale, by the site's word."""
    site = stage.world.parts["market"]
    assert isinstance(site, MarketSite)
    sold = site.market.search(Wanted(keyword=franchise.keyword, statuses=SOLD))
    offers = site.market.search(Wanted(keyword=franchise.keyword, statuses=ON_SALE))
    usual = median(one.price_yen for one in sold)
    return usual, {one.goods.id: one.price_yen for one in offers}


@pytest.mark.parametrize(("place", "percent"), TARGETS)
async def test_a_target_far_under_the_median_is_told_by_the_api_the_pages_and_a_message(
    stage: Stage, place: int, percent: int
) -> None:
    franchise = FRANCHISES[place]
    usual, offers = find_prices(stage, franchise)
    target, least = int(usual * percent / 100), min(offers.values())
    assert least <= target
    await stage.notify()
    setting = {"keyword": franchise.keyword, "target_price": target}
    product = await stage.add("/products", name="想い出", setting=setting)
    await stage.rounds.pass_time(timedelta(minutes=5))
    told = (await stage.get("/prices/alerts", product_id=product["id"]))["alerts"]
    mine = [one for one in told if one["kind"] == "under_target"]
    cheapest = min(mine, key=lambda one: one["price"])
    assert (cheapest["price"], offers[cheapest["external_id"]]) == (least, least)
    assert (cheapest["threshold"], cheapest["is_open"]) == (target, True)
    is_doubtful = cheapest["doubt"] is not None
    for language, doubt in DOUBT.items():
        stage.visitor.speak(language)
        for path in ("/prices", f"/prices/{product['id']}"):
            page = await stage.visitor.see(path)
            lines = re.findall(f"[^>]*¥{least:,} [^<]*¥{target:,}[^<]*", page)
            assert [doubt in line for line in lines] == [is_doubtful] * (len(lines) or 1)
    bodies = [one for one in stage.catcher.bodies() if "at or under the target" in one]
    [message] = [one for one in bodies if f"¥{least:,} " in one]
    assert message.startswith("想い出: ")
    assert (DOUBT["en"] in message) == is_doubtful


async def test_a_target_under_everything_that_is_there_tells_nobody(stage: Stage) -> None:
    usual, offers = find_prices(stage, FRANCHISES[13])
    target = int(usual * 0.2)
    assert min(offers.values()) > target
    await stage.notify()
    setting = {"keyword": FRANCHISES[13].keyword, "target_price": target}
    await stage.add("/products", name="p", setting=setting)
    await stage.rounds.pass_time(timedelta(minutes=5))
    assert (await stage.get("/prices/alerts"))["alerts"] == []
    assert stage.catcher.bodies() == []
