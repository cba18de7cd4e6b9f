"""The overview: a tile a watch, with figures that are right."""

import html
import re
from pathlib import Path

from mimawari.kernel.job import NewJob
from mimawari.watches.streams.models import EventType, Sense
from tests.conftest import Databases
from tests.web.ground import Browser, open_site
from tests.web.scene import GIVEN, HOSTILE, add_monitor, add_targets, keep, notice

ENGLISH = {"Accept-Language": "en"}


async def tiles(browser: Browser) -> dict[str, str]:
    """Return what each tile says, by the page that it leads to."""
    page = await browser.see("/", **ENGLISH)
    found = re.findall(r'<article class="card tile.*?</article>', page, re.DOTALL)
    said = [" ".join(re.sub(r"<[^>]+>", " ", one).split()) for one in found]
    links = [re.findall(r'href="(/[a-z]+)"', one)[0] for one in found]
    return {link: html.unescape(text) for link, text in zip(links, said, strict=True)}


async def test_an_empty_installation_shows_a_tile_a_watch(visitor: Browser) -> None:
    assert await tiles(visitor) == {
        "/hot": "Hot – leads the last 24 hours IPs 0 Open alerts 0",
        "/prices": "Prices 0 open alerts Products 0",
        "/rentals": "Rentals 0 / 5 details read in this hour Waiting 0 Next detail now",
        "/books": "Books 0 new books in a week Searches 0 Calls today 0 / 100",
        "/streams": "Streams 0 monitored now Waiting for their start 0 In alert 0",
    }


async def test_tiles_count_what_there_is(databases: Databases, tmp_path: Path) -> None:
    async with open_site(await databases.ready(), tmp_path, **GIVEN) as browser:
        await browser.log_in()
        system = browser.api.system
        await add_targets(system)
        await system.store.queue.put([NewJob(kind="rentals.detail")])
        await system.store.limiter.acquire(system.watches.limit("rentals.detail"), "test")
        await add_monitor(system, 1)
        await keep(system, await add_monitor(system, 2), told=(Sense.SILENCE,), title=HOSTILE)
        said = await tiles(browser)
        page = await browser.see("/")
    assert "IPs 1" in said["/hot"]
    assert "Products 1" in said["/prices"]
    assert said["/rentals"].startswith("Rentals 1 / 5 details read in this hour Waiting 1 Next")
    assert "Searches 1" in said["/books"]
    streams = "Streams 1 monitored now Waiting for their start 1 In alert 1"
    assert said["/streams"] == streams
    assert page.count('class="card tile bad"') == 1


async def test_targets_and_events_go_by_the_names_that_people_gave_them(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_site(await databases.ready(), tmp_path, **GIVEN) as browser:
        await browser.log_in()
        system = browser.api.system
        monitor = await add_monitor(system)
        started = notice(EventType.STARTED, system.clock.now())
        await keep(system, monitor, started, told=(Sense.SILENCE,), title="Harbour")
        page = await browser.see("/", **ENGLISH)
        await system.store.queue.put([NewJob(kind="streams.check", target=f"streams:{monitor.id}")])
        for path in ("/queue", "/why", f"/why?name=streams:{monitor.id}", "/deliveries"):
            assert "Harbour" in await browser.see(path), path
    soon = page[page.index('id="soon"') : page.index('id="events"')]
    assert f'<a href="/why?name=streams%3A{monitor.id}">Harbour</a>' in soon
    assert monitor.id not in re.sub(r'href="[^"]*"', "", page)
    events = page[page.index('id="events"') :]
    assert "Stream started" in events
    assert "Harbour" in events
    assert '<span class="soft">webhook</span>' in events
    incidents = page[: page.index('id="tiles"')]
    assert f'<a href="/streams/{monitor.id}">Harbour</a> silent since' in incidents
