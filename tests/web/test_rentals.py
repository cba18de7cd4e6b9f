"""The pages of the rentals watch: how it stands, its searches, what changed, its properties."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mimawari.errors import BadInput
from mimawari.kernel.values import BreakerPolicy
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import actions, lists, queries, sync, tasks
from mimawari.watches.rentals.models import RentalList, Seen
from mimawari.watches.rentals.schemas.responses import PropertyOut
from mimawari.watches.rentals.sync import Look
from mimawari.web.forms import whole
from mimawari.web.rentals_property import frame_of, list_points
from mimawari.web.words import Words
from tests.rentals.seeing import TOKYO, keep, keep_gone, on_page
from tests.web.ground import Browser

HOSTILE = '<script>alert(1)</script>" onload="x'
SITE_URL = "https://realestate.yahoo.co.jp/rent"
LIST = f"{SITE_URL}/search/03/13/13104/"
ROOM = f"{1:044x}"
DAY = timedelta(days=1)
ENGLISH = {"Accept-Language": "en"}
USUAL = {"url": LIST, "every": "6h", "limit": "50"}


def seen(**given: Any) -> Seen:
    """Make up the property's own page on the real site."""
    return replace(on_page(ROOM, **given), url=f"{SITE_URL}/detail/{ROOM}/")


async def keep_story(visitor: Browser) -> None:
    """Keep a property whose rent fell, that ended, and came back dearer under a hostile name."""
    store, now = visitor.api.store, visitor.api.system.clock.now()
    await keep(store, now - 9 * DAY, seen(rent_yen=72_000))
    await keep(store, now - 6 * DAY, seen(rent_yen=70_000))
    async with store.edit() as tx:
        look = Look(job_id="job", at=now - 5 * DAY, zone=TOKYO)
        await sync.end_missing(tx, [ROOM], look)
    await keep(store, now - 3 * DAY, seen(rent_yen=75_000, building_name=HOSTILE))


async def list_saved(visitor: Browser) -> list[RentalList]:
    """List the searches that are saved."""
    async with visitor.api.store.read() as reader:
        return await lists.list_saved(reader)


async def test_the_pages_of_a_new_installation_say_what_to_do(visitor: Browser) -> None:
    page = await visitor.see("/rentals", **ENGLISH)
    for said in ("No searches are saved yet", "0 of 5 used", "One may be read now", "No worker"):
        assert said in page
    assert "No such properties" in await visitor.see("/rentals/list", **ENGLISH)
    assert "変化はまだありません" in await visitor.see("/rentals/changes")


async def test_hostile_names_stay_text_on_every_page_in_both_languages(visitor: Browser) -> None:
    await keep_story(visitor)
    for path in ("/rentals", "/rentals/list", "/rentals/changes", f"/rentals/{ROOM}"):
        for language in ("ja", "en"):
            page = await visitor.see(path, **{"Accept-Language": language})
            assert f'<html lang="{language}"' in page
            assert "&lt;script&gt;alert(1)" in page
            assert "<script>alert" not in page
            assert not re.search(r"<[^>]*\s(?:style|on[a-z]+)=", page)


async def test_a_search_is_saved_changed_run_and_removed(visitor: Browser) -> None:
    added = await visitor.send("/rentals/searches", **USUAL)
    assert (added.status_code, added.headers["location"]) == (303, "/rentals#searches")
    (saved,) = await list_saved(visitor)
    assert (saved.url, saved.limit, saved.every_for) == (LIST, 50, timedelta(hours=6))
    page = await visitor.see(f"/rentals?change={saved.id}", **ENGLISH)
    assert 'value="6h"' in page
    assert "every 6 h" in page
    await visitor.send("/rentals/searches", **{**USUAL, "every": "2d"})
    (changed,) = await list_saved(visitor)
    assert (changed.id, changed.every_for) == (saved.id, 2 * DAY)
    assert (await visitor.send(f"/rentals/searches/{saved.id}/run")).status_code == 303
    job = await visitor.api.store.queue.find_live(lists.member_of(saved.id))
    assert job is not None
    assert job.args["caller"] == "web"
    assert (await visitor.send(f"/rentals/searches/{saved.id}/remove")).status_code == 303
    assert not await list_saved(visitor)
    again = await visitor.send(f"/rentals/searches/{saved.id}/run")
    assert again.status_code == 404


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"url": "https://evil.example/"}, "is no list of the site"),
        ({"every": "5m"}, "How often: write whole hours or days"),
        ({"limit": "ten"}, "Most rooms: give a whole number"),
        ({"limit": "5001"}, "Most rooms: give 5000 or less"),
        ({"limit": ""}, "Most rooms: give a whole number"),
        ({"url": ""}, "Address of the list: fill this in"),
    ],
)
async def test_a_search_that_cannot_be_is_shown_again_with_what_is_wrong(
    visitor: Browser, typed: dict[str, str], said: str
) -> None:
    visitor.speak("en")
    given = {**USUAL, **typed}
    refused = await visitor.send("/rentals/searches", **given)
    assert refused.status_code == 422
    assert said in refused.text
    for value in given.values():
        assert f'value="{value}"' in refused.text
    assert not await list_saved(visitor)


async def test_no_form_is_taken_without_its_token(visitor: Browser) -> None:
    await keep_story(visitor)
    found = await actions.save_search(visitor.api.system, LIST, 10, DAY)
    search = f"/rentals/searches/{found.id}"
    for path in ("/rentals/searches", f"{search}/run", f"{search}/remove", f"/rentals/{ROOM}/read"):
        refused = await visitor.http.post(path, data=USUAL)
        assert refused.status_code == 422
    (kept,) = await list_saved(visitor)
    assert kept.limit == 10
    assert await visitor.api.store.queue.find_live(tasks.key_of(ROOM)) is None


async def test_changes_show_which_way_they_went_and_are_chosen_by_kind(visitor: Browser) -> None:
    await keep_story(visitor)
    page = await visitor.see("/rentals/changes?kind=rent", **ENGLISH)
    rows = page.split("<tbody>")[1]
    assert rows.count("<tr>") == 2
    assert re.search(r"▼</span> ¥2,000", rows)
    assert re.search(r"▲</span> ¥5,000", rows)
    wrong = await visitor.get("/rentals/changes?kind=colour")
    assert wrong.status_code == 422
    assert 'role="alert"' in wrong.text


async def test_lists_are_paged_to_their_end_with_nothing_twice(visitor: Browser) -> None:
    now = visitor.api.system.clock.now()
    await keep(visitor.api.store, now, *(on_page(f"{number:044x}") for number in range(1, 121)))
    for path, name in (("/rentals/list", "after"), ("/rentals/changes", "before")):
        seen: list[str] = []
        link = ""
        for left in (50, 50, 20):
            page = await visitor.see(path + link)
            found = re.findall(r'href="/rentals/([0-9a-f]{44})"', page)
            assert len(found) == left
            seen += found
            more = re.search(rf'href="(\?[^"]*\b{name}=[^"]+)">[^<]* →', page)
            link = more[1].replace("&amp;", "&") if more else ""
        assert link == ""
        assert len(set(seen)) == 120
    assert "120 件" in await visitor.see("/rentals/list")


async def test_properties_are_filtered_and_a_wrong_filter_is_told(visitor: Browser) -> None:
    now = visitor.api.system.clock.now()
    rents = [on_page(f"{number:044x}", rent_yen=number * 10_000) for number in range(1, 9)]
    await keep(visitor.api.store, now, *rents)
    page = await visitor.see("/rentals/list?min_rent=30000&max_rent=50000&sort=rent&order=asc")
    assert re.findall(r"¥([345]0,000)", page) == ["30,000", "40,000", "50,000"]
    for query in ("min_rent=x", "sort=colour", "after=z", "status=sold", "min_area=-1"):
        wrong = await visitor.get(f"/rentals/list?{query}")
        assert wrong.status_code == 422
        assert 'role="alert"' in wrong.text


async def test_both_tables_are_saved_as_files_whatever_page_is_shown(visitor: Browser) -> None:
    now = visitor.api.system.clock.now()
    rooms = [on_page(f"{number:044x}", building_name="=1+1") for number in range(1, 61)]
    await keep(visitor.api.store, now, *rooms)
    for path in ("/rentals/list", "/rentals/changes"):
        page = await visitor.see(path)
        link = re.search(r'href="(\?format=csv[^"]*)"', page)
        assert link is not None
        found = await visitor.get(path + link[1])
        assert found.headers["content-type"] == "text/csv; charset=utf-8"
        lines = found.content.decode("utf-8").strip().splitlines()
        assert lines[0].startswith("\ufeff")
        assert len(lines) == 61
        assert "'=1+1" in lines[1]


async def test_a_property_is_read_again_in_its_turn_and_says_why_not_now(visitor: Browser) -> None:
    await keep_story(visitor)
    system, path = visitor.api.system, f"/rentals/{ROOM}"
    assert "No worker is running" in await visitor.see(path, **ENGLISH)
    until = system.clock.now() + timedelta(minutes=5)
    await system.store.limiter.hold(tasks.DETAIL, until, "the site turned us away")
    page = await visitor.see(path, **ENGLISH)
    assert "Its turn comes at" in page
    assert "The site turned us away." in page
    sent = await visitor.send(f"{path}/read")
    assert (sent.status_code, sent.headers["location"]) == (303, f"{path}#again")
    assert await system.store.queue.find_live(tasks.key_of(ROOM)) is not None
    page = await visitor.see(path, **ENGLISH)
    assert f"{path}/read" not in page
    assert "waiting" in page


async def test_a_property_that_is_gone_is_never_asked_for_again(visitor: Browser) -> None:
    await keep_story(visitor)
    await keep_gone(visitor.api.store, visitor.api.system.clock.now(), [ROOM])
    page = await visitor.see(f"/rentals/{ROOM}", **ENGLISH)
    assert "never asked for again" in page
    assert f"/rentals/{ROOM}/read" not in page
    assert (await visitor.send(f"/rentals/{ROOM}/read")).status_code == 404
    assert (await visitor.get(f"/rentals/{'f' * 44}")).status_code == 404


async def test_a_cool_down_is_drawn_and_told_with_its_reason(visitor: Browser) -> None:
    system = visitor.api.system
    assert "No cool-down" in await visitor.see("/rentals", **ENGLISH)
    policy = BreakerPolicy(failures=1, cool_for=timedelta(hours=1))
    await system.store.breaker.failed(SITE.name, policy, "<b>blocked</b>")
    until = system.clock.now() + timedelta(minutes=5)
    await system.store.limiter.hold(tasks.DETAIL, until, "preventive pause after 20 details")
    page = await visitor.see("/rentals", **ENGLISH)
    assert page.count('class="lane s-cooling"') == 2
    assert "preventive pause after 20 details" in page
    assert "Breaker open" in page
    assert "<b>blocked" not in page
    await system.store.breaker.worked(SITE.name)
    after = await visitor.see("/rentals", **ENGLISH)
    assert after.count('class="lane s-cooling"') == 2
    assert "&lt;b&gt;blocked" in after
    assert "<b>blocked" not in after


async def test_rents_are_no_line_while_it_was_not_offered(visitor: Browser) -> None:
    await keep_story(visitor)
    async with visitor.api.store.read() as reader:
        shots = await queries.list_snapshots(reader, ROOM, 10)
        one = PropertyOut.of(await queries.find_property(reader, ROOM))
    rents = [rent for _, rent in list_points(shots, one)]
    assert rents == [72_000, 70_000, None, 75_000]
    page = await visitor.see(f"/rentals/{ROOM}", **ENGLISH)
    assert page.count('<path class="line') == 2
    assert "Snapshots: 4." in page


@pytest.mark.parametrize(
    ("low", "high"), [(55_000, 61_500), (70_000, 70_000), (1, 1), (0, 9), (1, 300_000), (999, 1000)]
)
def test_a_chart_holds_every_rent_between_round_values(low: float, high: float) -> None:
    bottom, top = frame_of(low, high)
    assert 0 <= bottom <= low <= high <= top


@pytest.mark.parametrize("text", ["", "-1", "1.5", "\u0663", "1234567890123", "1e3"])
def test_only_plain_digits_are_a_number(text: str) -> None:
    with pytest.raises(BadInput, match="rooms: give a whole number"):
        whole("rooms", text, Words("en"))
