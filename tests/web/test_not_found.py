"""While a site answers 404 to everything, no page, answer or message calls anything gone."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from mimawari.kernel.not_found import RunState
from mimawari.sim.sites.mercari.items import FRANCHISES
from tests.web.at_work import ROOMS, Stage

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


async def count_words(stage: Stage, paths: Sequence[str]) -> Counter[tuple[str, str]]:
    """Count the words that call something gone on each page, in both languages."""
    found: Counter[tuple[str, str]] = Counter()
    for language, words in GONE.items():
        stage.visitor.speak(language)
        for path in paths:
            text = HIDDEN.sub(" ", await stage.visitor.see(path))
            found[language, path] = len(words.findall(text))
    return found


async def list_paths(stage: Stage) -> list[str]:
    """List the pages that tell of rooms, results and jobs."""
    rooms = (await stage.get("/properties", limit=200))["properties"]
    # The lists filtered by state have no row that they would not call gone.
    lists = ("/rentals/list?status=ended", "/queue?state=permanent_fail", "/prices/1/results")
    kept = [f"/rentals/{one['property_id']}" for one in rooms]
    pages = ("/", "/rentals", "/rentals/list", "/rentals/changes", "/prices", "/prices/1")
    return [*pages, "/prices/1/removed", "/queue", "/deliveries", *lists, *kept]


async def is_held(stage: Stage) -> bool:
    """Return whether both sites are on hold for their 404s."""
    runs = [await stage.visitor.api.store.not_found.find(site) for site in SITES]
    return all(run is not None and run.state is RunState.HELD for run in runs)


async def list_gone(stage: Stage) -> dict[str, set[str]]:
    """List what the API calls gone, by where it does so."""
    ended = (await stage.get("/properties", status="ended"))["properties"]
    changed = (await stage.get("/changes/recent", kind="status"))["changes"]
    removed = (await stage.get("/crawl/removed/1"))["removed"]
    queue = await stage.get("/queue/stats")
    return {
        "ended": {one["property_id"] for one in ended},
        "changed": {one["property_id"] for one in changed},
        "removed": {one["external_id"] for one in removed},
        "failed": {str(number) for number in range(queue["permanent_fail"])},
    }


async def begin(stage: Stage) -> None:
    """Have rooms and a product watched, and somebody told of all that happens."""
    await stage.notify()
    setting = {"keyword": FRANCHISES[-1].keyword, "target_price": 90_000}
    await stage.add("/products", name="p", setting=setting)
    form = {"url": AREA, "limit": "12", "every": "3h"}
    assert (await stage.visitor.send("/rentals/searches", **form)).status_code == 303
    await stage.rounds.pass_time(timedelta(hours=3))


async def test_during_a_hold_no_page_in_any_language_calls_anything_gone_nor_does_a_message(
    stage: Stage,
) -> None:
    """Both sites, six hours: every page says of what is gone what it said before."""
    await begin(stage)
    paths = await list_paths(stage)
    assert len(paths) > 12 + len(SITES)
    words, gone = await count_words(stage, paths), await list_gone(stage)
    said = len(stage.catcher.bodies())
    for part in ("rentals", "market"):
        stage.world.orders.add({"part": part, "do": "gone", "for_s": SIX_HOURS.seconds})
    end = stage.rounds.clock.now() + SIX_HOURS - STEP
    looks = 0
    while stage.rounds.clock.now() < end:
        await stage.rounds.pass_time(STEP)
        if await is_held(stage):
            looks += 1
            assert await list_gone(stage) == gone
            if looks in {1, 12}:
                found = await count_words(stage, paths)
                assert [one for one in words if found[one] > words[one]] == []
    assert looks > 12
    heard = "\n".join(stage.catcher.bodies()[said:])
    assert GONE["en"].findall(heard) == []
    for site in SITES:
        assert len(re.findall(f"{site} failed [0-9]+ times in a row: .* 404 to every", heard)) == 1
    assert len(re.findall("in a row|still fails|works again", heard)) == len(SITES)
    said = len(stage.catcher.bodies())
    await stage.rounds.pass_time(timedelta(hours=5))
    heard = "\n".join(stage.catcher.bodies()[said:])
    for site in SITES:
        assert len(re.findall(f"{site}: over, it works again", heard)) == 1
    assert len(re.findall("in a row|still fails|works again", heard)) == len(SITES)
    check_read_once(stage, {one["property_id"] for one in (await list_rooms(stage))})


async def list_rooms(stage: Stage) -> list[Any]:
    """List all rooms that the API knows."""
    return list((await stage.get("/properties", limit=200))["properties"])


def check_read_once(stage: Stage, rooms: set[str]) -> None:
    """Insist by the site's log alone that each room was read, and one of them by the control."""
    seen = stage.world.log.list({"part": "rentals", "limit": "10000"})["seen"]
    kept = [one for one in seen if "/detail/" in one["path"] and not one["order"]]
    read = Counter(one["path"].split("/")[3] for one in kept)
    assert set(read) == rooms
    assert read.total() <= len(rooms) + 1
