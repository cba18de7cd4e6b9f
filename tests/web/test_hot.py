"""The pages of the hot watch: what they show, in both languages, and what their forms do."""

import csv
import io
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.watches.hot import alerts, franchises, rollups
from mimawari.watches.hot.models import AlertKind, Finding, Ip, NewIp
from mimawari.watches.hot.rollups import Period
from tests.conftest import Databases
from tests.hot.api_ground import CAPPED, HOUR, START, Hot, listed, seen
from tests.web.ground import HOSTILE, Browser, check_harmless, open_site

ENGLISH = {"Accept-Language": "en"}
FORM = {"name": "蒼の灯台", "keyword": "", "name_en": "", "weight": "1", "tags": ""}


@dataclass(frozen=True, slots=True)
class Site:
    """Somebody who is logged in, and the watch behind the pages on a clock that stands still."""

    browser: Browser
    hot: Hot

    async def see(self, path: str) -> str:
        """Look at a page in English that has all its words in Japanese too."""
        assert "<main" in await self.browser.see(path)
        return await self.browser.see(path, **ENGLISH)

    async def find(self, ip_id: int) -> Ip | None:
        """Find an IP as it is kept."""
        async with self.hot.api.store.read() as reader:
            return await franchises.find_ip(reader, ip_id)

    async def alert(self, ip_id: int, kind: AlertKind = AlertKind.SURGE) -> None:
        """Have an alert opened."""
        ip = await self.find(ip_id)
        assert ip is not None
        finding = Finding(kind=kind, value=2.5, threshold=2, samples=33)
        async with self.hot.api.store.edit() as tx:
            await alerts.sync_alerts(tx, ip, [finding], self.hot.clock.now())

    async def download(self, path: str) -> list[dict[str, str]]:
        """Take a file and read it as a spreadsheet does."""
        found = await self.browser.get(path)
        assert found.headers["content-type"] == "text/csv; charset=utf-8"
        return list(csv.DictReader(io.StringIO(found.content.decode("utf-8-sig"), newline="")))


@pytest.fixture
async def site(databases: Databases, tmp_path: Path) -> AsyncIterator[Site]:
    """A site of the test's own."""
    clock = VirtualClock(START)
    async with open_site(await databases.ready(), tmp_path, clock=clock) as browser:
        assert (await browser.log_in()).status_code == 303
        yield Site(browser, Hot(browser.api, clock))


async def test_before_there_is_an_ip_the_pages_say_so(site: Site) -> None:
    assert "No alert is open." in await site.see("/hot")
    assert "Nothing was counted in this span yet." in await site.see("/hot")
    assert "mimawari hot ip add NAME" in await site.see("/hot/ips")
    for path in ("/hot/1", "/hot/0", "/hot/99999999999", "/hot/one", "/hot/1/items/m1"):
        assert (await site.browser.get(path)).status_code == 404


async def test_the_ranking_shows_places_and_how_they_moved(site: Site) -> None:
    first = await site.hot.flow("first", inflow=10, outflow=9)
    second = await site.hot.flow("second", inflow=10, outflow=2)
    site.hot.clock.step(HOUR)
    await site.hot.bring(second, inflow=5, outflow=40)
    await site.hot.bring(first, inflow=10, outflow=1)
    await site.hot.flow("third", inflow=3, outflow=1)
    site.hot.clock.step(HOUR)
    page = await site.see("/hot?hours=1")
    order = [page.index(f">{name}</a>") for name in ("second", "third", "first")]
    assert order == sorted(order)
    assert 'aria-label="up by 1">▲1' in page
    assert 'aria-label="down by 2">▼2' in page
    assert ">new</span>" in page
    assert page.count('class="spark"') == 3
    assert "40 sold in the last 24 hours" not in page
    assert "42 sold in the last 24 hours" in page


async def test_a_ranking_has_its_kind_and_span_and_is_a_file_too(site: Site) -> None:
    await site.hot.flow("few", inflow=90, outflow=1)
    await site.hot.flow("many", inflow=1, outflow=90)
    site.hot.clock.step(HOUR)
    for kind, first in (("inflow", "few"), ("outflow", "many"), ("hot", "many"), ("x", "many")):
        rows = await site.download(f"/hot?type={kind}&hours=168&format=csv")
        assert rows[0]["name"] == first
        page = await site.see(f"/hot?type={kind}&hours=168")
        assert page.count('aria-current="true"') == 2


async def test_a_ranking_goes_on_page_by_page(site: Site) -> None:
    names = [f"ip-{number:02}" for number in range(30)]
    for place, ip_id in enumerate(await site.hot.named(*names)):
        await site.hot.crawl(ip_id)
        await site.hot.bring(ip_id, inflow=0, outflow=40 - place)
    site.hot.clock.step(HOUR)
    page = await site.see("/hot")
    assert "1–25 of 30" in page
    assert "ip-24" in page
    assert "ip-25" not in page
    assert "ip-29" in await site.see("/hot?offset=25")


async def test_a_ranking_of_more_than_a_hundred_tells_how_many_and_shows_them_all(
    site: Site,
) -> None:
    names = [f"ip-{number:03}" for number in range(120)]
    for place, ip_id in enumerate(await site.hot.named(*names)):
        await site.hot.crawl(ip_id)
        await site.hot.bring(ip_id, inflow=0, outflow=140 - place)
    site.hot.clock.step(HOUR)
    assert "1–25 of 120" in await site.see("/hot")
    last = await site.see("/hot?offset=100")
    assert "101–120 of 120" in last
    assert '<td class="num">120</td>' in last
    assert "ip-119" in last
    assert len(await site.download("/hot?format=csv")) == 120


async def test_what_a_crawl_could_not_see_is_said(site: Site) -> None:
    (ip_id,) = await site.hot.named("capped")
    await site.hot.crawl(ip_id)
    await site.hot.crawl(ip_id, listed("m", 3), coverage=CAPPED)
    site.hot.clock.step(HOUR)
    for path in ("/hot", f"/hot/{ip_id}"):
        page = await site.see(path)
        assert "Only the newest pages on sale were seen" in page
        assert "1 of 10 pages of the last crawl could not be read." in page


@pytest.mark.parametrize("kind", AlertKind)
async def test_an_alert_is_said_and_acknowledged(site: Site, kind: AlertKind) -> None:
    (ip_id,) = await site.hot.named("a")
    await site.alert(ip_id, kind)
    assert "33" in await site.see("/hot")
    assert "/hot/alerts/1/ack" in await site.see(f"/hot/{ip_id}")
    done = await site.browser.send("/hot/alerts/1/ack", back="ip")
    assert (done.status_code, done.headers["location"]) == (303, f"/hot/{ip_id}")
    assert "acknowledged" in await site.see("/hot")
    assert (await site.browser.send("/hot/alerts/9/ack")).status_code == 404


async def test_open_alerts_go_on_page_by_page(site: Site) -> None:
    for ip_id in await site.hot.named(*(f"ip-{number}" for number in range(11))):
        await site.alert(ip_id)
    page = await site.see("/hot")
    assert page.count("/ack") == 10
    following = re.search(r'href="(\?alerts=[0-9]+)"', page)
    assert following is not None
    assert (await site.see(f"/hot{following[1]}")).count("/ack") == 1


async def test_an_ip_is_added_and_found(site: Site) -> None:
    sent = await site.browser.send("/hot", **FORM | {"weight": "\uff12.5", "tags": "a, b、c"})
    assert (sent.status_code, sent.headers["location"]) == (303, "/hot/1")
    ip = await site.find(1)
    assert ip is not None
    assert (ip.name, ip.keyword, ip.weight, ip.tags) == (
        "蒼の灯台",
        "蒼の灯台",
        2.5,
        ("a", "b", "c"),
    )
    page = await site.see("/hot/1")
    assert "first run" in page
    assert "蒼の灯台" in await site.see("/hot/ips?search=灯台")
    assert "None was found." in await site.see("/hot/ips?search=nothing")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", " ", "Name: must have 1 to 200 characters"),
        ("weight", "heavy", "Weight, 0.1 to 4: give a number"),
        ("weight", "9", "give 4.0 or less"),
        ("tags", "x" * 60, "must have 1 to 50 characters"),
        ("keyword", "taken", "has the keyword &#39;taken&#39; already"),
    ],
)
async def test_a_form_that_is_wrong_says_why_and_keeps_what_was_typed(
    site: Site, field: str, value: str, said: str
) -> None:
    await site.hot.named("taken", "other")
    site.browser.http.cookies.set("lang", "en")
    for path in ("/hot", "/hot/2"):
        refused = await site.browser.send(path, **FORM | {"name_en": "typed", field: value})
        assert refused.status_code == 422
        assert said in refused.text
        assert 'role="alert"' in refused.text
        assert 'value="typed"' in refused.text
    assert await site.find(3) is None


async def test_an_ip_is_changed_paused_crawled_and_removed(site: Site) -> None:
    (ip_id,) = await site.hot.named("before")
    browser, path = site.browser, f"/hot/{ip_id}"
    assert (await browser.send(f"{path}/switch", active="false")).status_code == 303
    assert "Paused, and so not crawled by itself." in await site.see(path)
    assert (await browser.send(path, **FORM)).headers["location"] == path
    changed = await site.find(ip_id)
    assert changed is not None
    assert (changed.name, changed.active) == ("蒼の灯台", False)
    assert (await browser.send(f"{path}/switch", active="true")).status_code == 303
    assert (await browser.send(f"{path}/crawl")).headers["location"] == path
    live = await site.hot.api.store.queue.find_live(franchises.member_of(ip_id))
    assert live is not None
    assert "waits for a free worker" in await site.see(path)
    assert (await browser.send(f"{path}/remove")).headers["location"] == "/hot/ips"
    assert (await browser.get(path)).status_code == 404
    for part in ("", "/switch", "/crawl", "/remove"):
        assert (await browser.send(f"{path}{part}", **FORM)).status_code == 404


async def test_no_form_is_taken_without_its_token(site: Site) -> None:
    await site.hot.named("a")
    await site.alert(1)
    parts = ("", "/1", "/1/switch", "/1/crawl", "/1/remove", "/alerts/1/ack")
    for part in parts:
        refused = await site.browser.http.post(f"/hot{part}", data=FORM)
        assert refused.status_code == 422
    ip = await site.find(1)
    assert ip is not None
    assert (ip.name, await site.find(2)) == ("a", None)


async def test_an_ip_shows_its_hours_days_and_crawls(site: Site) -> None:
    ip_id = await site.hot.flow("a", inflow=4, outflow=2)
    site.hot.clock.step(2 * HOUR)
    await site.hot.bring(ip_id, inflow=7, outflow=3)
    zone = site.hot.api.system.settings.zone
    async with site.hot.api.store.edit() as tx:
        span = rollups.span_of(Period.DAY, START.astimezone(zone).date(), zone)
        await rollups.fold(tx, span, [ip_id])
    page = await site.see(f"/hot/{ip_id}?hours=24&heat=inflow")
    assert page.count('class="bar c1"') == page.count('class="bar c2"') == 2
    assert "Listed 01-05 21:00 4" in page
    # Of the hour between nobody knows anything.
    assert re.search(r'<td class="h3">4</td><td class="gap">·</td><td class="h5">7</td>', page)
    assert page.count("2/2") == 3
    assert "¥1,000" in page
    hours = await site.download(f"/hot/{ip_id}?format=csv&what=hours")
    assert [row["inflow"] for row in hours] == ["4", "7"]
    (day,) = await site.download(f"/hot/{ip_id}?format=csv&what=days")
    assert day["inflow"] == "11"


async def test_items_go_on_page_by_page_and_have_a_life_story(site: Site) -> None:
    (ip_id,) = await site.hot.named("a")
    await site.hot.crawl(ip_id)
    await site.hot.crawl(ip_id, listed("m", 26))
    site.hot.clock.step(HOUR)
    await site.hot.crawl(ip_id, [seen("m0000", price_yen=800)])
    site.hot.clock.step(HOUR)
    await site.hot.crawl(ip_id, [seen("m0000", price_yen=800, sold=True)])
    page = await site.see(f"/hot/{ip_id}")
    following = re.search(r'href="(\?below=[^"]+)#items"', page)
    assert following is not None
    assert page.count(f'href="/hot/{ip_id}/items/') == 25
    rest = await site.see(f"/hot/{ip_id}{following[1]}")
    assert rest.count(f'href="/hot/{ip_id}/items/') == 1
    assert (await site.see(f"/hot/{ip_id}?status=sold")).count("/items/m") == 1
    assert len(await site.download(f"/hot/{ip_id}?format=csv")) == 26
    story = await site.see(f"/hot/{ip_id}/items/m0000")
    order = [story.index(word) for word in (">listed<", ">another price<", ">sold</td>")]
    assert order == sorted(order)
    assert 'd="M56.0 10.0H384.0V47.2H712.0V47.2H712.0V47.2"' in story
    assert (await site.browser.get(f"/hot/{ip_id}?below=x")).status_code == 422


async def test_hostile_texts_stay_text(site: Site) -> None:
    (ip,) = await site.hot.add(
        NewIp(name=HOSTILE, keyword=HOSTILE, name_en=HOSTILE, tags=(HOSTILE,))
    )
    await site.hot.crawl(ip.id)
    hostile = seen("m1", title=HOSTILE, item_url="javascript:alert(1)", image_url=HOSTILE)
    await site.hot.crawl(ip.id, [hostile])
    await site.hot.crawl(ip.id, error=HOSTILE)
    await site.alert(ip.id)
    site.hot.clock.step(HOUR)
    for path in ("/hot", "/hot/ips", f"/hot/{ip.id}", f"/hot/{ip.id}/items/m1"):
        page = await site.see(path)
        check_harmless(page)
        assert "javascript:" not in page
    refused = await site.browser.send("/hot", **FORM | {"keyword": HOSTILE})
    check_harmless(refused.text)
