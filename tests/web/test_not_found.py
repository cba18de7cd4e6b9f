"""While a site answers 404 to everything, no page, answer or message calls anything gone."""

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.not_found import RunState
from mimawari.kernel.rounds import Rounds
from mimawari.net.http import Fetcher
from mimawari.net.ways import open_ways
from mimawari.notify import watch as notify
from mimawari.sim.market_items import FRANCHISES
from mimawari.sim.market_site import MarketSite
from mimawari.sim.rentals import Rentals
from mimawari.sim.world import World
from mimawari.store.sql.link import NearLink
from mimawari.watches.prices import watch as prices
from mimawari.watches.rentals import watch as rentals
from tests.conftest import Databases
from tests.notify.catcher import Catcher, open_catcher
from tests.web.ground import Browser, open_site

START = datetime(2026, 6, 1, 12, 30, tzinfo=UTC)
ROOMS, MARKET = "http://rentals.test", "http://market.test"
SITES = ("yahoo_realestate", "mercari")
AREA = f"{ROOMS}/rent/search/06/27/27991/"
SIX_HOURS = timedelta(hours=6)
STEP = timedelta(minutes=15)
GONE = {
    "en": re.compile(r"\bended\b|\bgone\b|off the market", re.IGNORECASE),
    "ja": re.compile("終了|削除済み|消滅|消えた|なくな|売り切れ"),
}
"""The words by which pages and messages call something gone."""
HIDDEN = re.compile(r"<script.*?</script>|<style.*?</style>|<[^>]*>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stage:
    """Somebody who looks at two watches at work, the sites they ask, and the messages sent."""

    visitor: Browser
    world: World
    rounds: Rounds
    catcher: Catcher

    async def get(self, path: str, **given: Any) -> Any:
        """Get what the API answers."""
        answer = await self.visitor.api.http.get(f"/api{path}", params=given)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def count_words(self, paths: Sequence[str]) -> Counter[tuple[str, str]]:
        """Count the words that call something gone on each page, in both languages."""
        found: Counter[tuple[str, str]] = Counter()
        for language, words in GONE.items():
            self.visitor.speak(language)
            for path in paths:
                text = HIDDEN.sub(" ", await self.visitor.see(path))
                found[language, path] = len(words.findall(text))
        return found

    async def list_paths(self) -> list[str]:
        """List the pages that tell of rooms, results and jobs."""
        rooms = (await self.get("/properties", limit=200))["properties"]
        # The lists filtered by state have no row that they would not call gone.
        lists = ("/rentals/list?status=ended", "/queue?state=permanent_fail", "/prices/1/results")
        kept = [f"/rentals/{one['property_id']}" for one in rooms]
        pages = ("/", "/rentals", "/rentals/list", "/rentals/changes", "/prices", "/prices/1")
        return [*pages, "/prices/1/removed", "/queue", "/deliveries", *lists, *kept]

    async def is_held(self) -> bool:
        """Return whether both sites are on hold for their 404s."""
        runs = [await self.visitor.api.store.not_found.find(site) for site in SITES]
        return all(run is not None and run.state is RunState.HELD for run in runs)

    async def list_gone(self) -> dict[str, set[str]]:
        """List what the API calls gone, by where it does so."""
        ended = (await self.get("/properties", status="ended"))["properties"]
        changed = (await self.get("/changes/recent", kind="status"))["changes"]
        removed = (await self.get("/crawl/removed/1"))["removed"]
        queue = await self.get("/queue/stats")
        return {
            "ended": {one["property_id"] for one in ended},
            "changed": {one["property_id"] for one in changed},
            "removed": {one["external_id"] for one in removed},
            "failed": {str(number) for number in range(queue["permanent_fail"])},
        }


@pytest.fixture
async def stage(databases: Databases, tmp_path: Path) -> AsyncIterator[Stage]:
    clock = VirtualClock(START)
    world = World(clock, (Rentals(clock, 1), MarketSite(clock, 1)), 1)
    async with open_catcher() as catcher:
        given: dict[str, Any] = {
            "rentals_url": ROOMS,
            "mercari_api_url": MARKET,
            "mercari_url": MARKET,
            "allow_hosts": catcher.settings.allow_hosts,
        }
        watches = (rentals, prices, notify)
        url = await databases.ready()
        async with open_site(url, tmp_path, clock=clock, watches=watches, **given) as visitor:
            assert (await visitor.log_in()).status_code == 303
            system = visitor.api.system
            store = system.store
            # Threads are for those who must not wait; here time itself does.
            store.database.link = NearLink(store.database.link.engine)
            inside = httpx2.ASGITransport(app=world)
            async with open_ways(system.settings, store, clock, inside=inside) as ways:
                http = partial(Fetcher, ways)
                told = system.watches.open_destinations(store, clock)
                rounds = Rounds(store, clock, system.watches, told, http)
                yield Stage(visitor, world, rounds, catcher)


async def begin(stage: Stage) -> None:
    """Have rooms and a product watched, and somebody told of all that happens."""
    post = stage.visitor.api.http.post
    url = stage.catcher.url()
    notified = await post("/api/notify/targets", json={"name": "all", "url": url, "language": "en"})
    assert notified.status_code == 201, notified.text
    product = {"name": "p", "setting": {"keyword": FRANCHISES[-1].keyword, "target_price": 90_000}}
    assert (await post("/api/products", json=product)).status_code == 201
    form = {"url": AREA, "limit": "12", "every": "3h"}
    assert (await stage.visitor.send("/rentals/searches", **form)).status_code == 303
    await stage.rounds.pass_time(timedelta(hours=3))


async def test_during_a_hold_no_page_in_any_language_calls_anything_gone_nor_does_a_message(
    stage: Stage,
) -> None:
    """Both sites, six hours: every page says of what is gone what it said before."""
    await begin(stage)
    paths = await stage.list_paths()
    assert len(paths) > 12 + len(SITES)
    words, gone = await stage.count_words(paths), await stage.list_gone()
    said = len(stage.catcher.bodies())
    for part in ("rentals", "market"):
        stage.world.orders.add({"part": part, "do": "gone", "for_s": SIX_HOURS.seconds})
    end = stage.rounds.clock.now() + SIX_HOURS - STEP
    looks = 0
    while stage.rounds.clock.now() < end:
        await stage.rounds.pass_time(STEP)
        if await stage.is_held():
            looks += 1
            assert await stage.list_gone() == gone
            if looks in {1, 12}:
                found = await stage.count_words(paths)
                assert [one for one in words if found[one] > words[one]] == []
    assert looks > 12
    heard = "\n".join(stage.catcher.bodies()[said:])
    assert GONE["en"].findall(heard) == []
    for site in SITES:
        assert len(re.findall(f"{site} failed [0-9]+ times in a row: .* 404 to every", heard)) == 1
    assert len(re.findall("in a row|still fails|works again", heard)) == len(SITES)
    said = len(stage.catcher.bodies())
    await stage.rounds.pass_time(timedelta(hours=4))
    heard = "\n".join(stage.catcher.bodies()[said:])
    for site in SITES:
        assert len(re.findall(f"{site}: over, it works again", heard)) == 1
    assert len(re.findall("in a row|still fails|works again", heard)) == len(SITES)
