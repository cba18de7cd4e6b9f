"""Sessions: kept by the server, listed, ended by whoever may, and over when they are over."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.sessions import KEPT_FOR
from mimawari.web.session import COOKIE, Sessions
from tests.app.ground import KEY, KEYS, OTHER_KEY, check_error
from tests.conftest import Databases
from tests.web.ground import Browser, open_site

Timed = tuple[Browser, VirtualClock]
AGENT = "Mozilla/5.0 (<script>)" + "x" * 500


@pytest.fixture
async def timed(databases: Databases, tmp_path: Path) -> AsyncIterator[Timed]:
    """Somebody who is not logged in, and the time, which stands still."""
    clock = VirtualClock()
    async with open_site(await databases.ready(), tmp_path, clock=clock) as browser:
        yield browser, clock


async def enter(browser: Browser, key: str = KEY) -> str:
    """Log in, and return the cookie."""
    browser.http.cookies.clear()
    await browser.log_in(key)
    return str(browser.http.cookies[COOKIE])


async def is_in(browser: Browser, cookie: str) -> bool:
    """Say whether a cookie leads to the pages."""
    async with httpx2.AsyncClient(base_url=browser.api.address) as http:
        return (await http.get("/", headers={"Cookie": f"{COOKIE}={cookie}"})).status_code == 200


async def test_after_a_log_out_the_same_cookie_is_good_for_nothing(visitor: Browser) -> None:
    cookie = await enter(visitor)
    assert await is_in(visitor, cookie)
    await visitor.send("/logout")
    assert not await is_in(visitor, cookie)


async def test_a_session_ends_with_its_time(timed: Timed) -> None:
    browser, clock = timed
    cookie = await enter(browser)
    await clock.advance(KEPT_FOR)
    assert await is_in(browser, cookie)
    await clock.advance(timedelta(seconds=1))
    assert not await is_in(browser, cookie)
    assert await browser.api.store.sessions.list() == []


async def test_a_session_ends_with_its_key_also_if_the_key_comes_back(
    timed: Timed,
) -> None:
    browser, clock = timed
    kept = browser.api.store.sessions
    cookie = await enter(browser, OTHER_KEY)
    without = Sessions(KEYS[:1], kept, clock)
    assert await without.find(cookie, "::1") is None
    assert not await is_in(browser, cookie)
    # In another place among the keys it is the same key.
    cookie = await enter(browser, OTHER_KEY)
    assert await Sessions(KEYS[::-1], kept, clock).find(cookie, "::1") is not None


@pytest.mark.parametrize(
    "spoilt", ["", "a.b.c", "0.1790000000.00", "é" * 90, "x" * 6000, "\x7f", "%00"]
)
async def test_a_cookie_that_nobody_gave_is_none(stranger: Browser, spoilt: str) -> None:
    cookie = f"{COOKIE}={spoilt}".encode()
    found = await stranger.http.get("/", headers=[(b"cookie", cookie)])
    assert (found.status_code, found.headers["location"]) == (303, "/login")


async def test_the_cookie_is_kept_nowhere_and_tells_nothing(visitor: Browser) -> None:
    cookie = await enter(visitor)
    assert re.fullmatch(r"[\w-]{43}", cookie)
    session, *_ = await visitor.api.store.sessions.list()
    assert cookie not in str(session)
    assert KEY not in str(session)


async def test_who_is_logged_in_is_listed_and_ended_on_a_page(stranger: Browser) -> None:
    visitor, first = stranger, await enter(stranger)
    await visitor.http.post("/login", data={"key": OTHER_KEY}, headers={"User-Agent": AGENT})
    page = await visitor.see("/settings/sessions")
    assert "(この画面)" in page
    assert "Mozilla/5.0 (&lt;script&gt;)xxx" in page
    assert "2番" in page
    assert await is_in(visitor, first)
    [other] = [one for one in await visitor.api.store.sessions.list() if one.key_number == 1]
    done = await visitor.send("/settings/sessions/end", id=other.id)
    assert done.headers["location"] == "/settings/sessions"
    assert not await is_in(visitor, first)
    assert (await visitor.send("/settings/sessions/end", id=other.id)).status_code == 404


async def test_all_others_are_ended_at_once(visitor: Browser) -> None:
    others = [await enter(visitor) for _ in range(3)]
    mine = await enter(visitor)
    await visitor.send("/settings/sessions/end-others")
    assert [await is_in(visitor, one) for one in (*others, mine)] == [False] * 3 + [True]


async def test_an_end_needs_the_token_of_the_form(visitor: Browser) -> None:
    cookie = await enter(visitor)
    [mine, *_] = await visitor.api.store.sessions.list()
    sent = {"id": mine.id, "token": "0" * 64}
    assert (await visitor.http.post("/settings/sessions/end", data=sent)).status_code == 422
    assert await is_in(visitor, cookie)


async def test_the_api_lists_and_ends_sessions(visitor: Browser) -> None:
    cookie = await enter(visitor)
    api = visitor.api.http
    listed = (await api.get("/api/sessions")).json()["sessions"]
    mine = listed[0]
    assert sorted(mine) == ["address", "agent", "id", "key_number", "made_at", "seen_at"]
    assert mine["address"] == "127.0.0.1"
    assert (await api.delete(f"/api/sessions/{mine['id']}")).json() == {"ended": 1}
    assert not await is_in(visitor, cookie)
    check_error(await api.delete(f"/api/sessions/{mine['id']}"), 404, "not_found")
    cookie = await enter(visitor)
    assert (await api.delete("/api/sessions")).json()["ended"] >= 1
    assert not await is_in(visitor, cookie)
    # The key itself goes on.
    assert (await api.get("/api/sessions")).json() == {"sessions": []}


async def test_a_page_that_listens_hears_nothing_more_when_its_session_ends(
    visitor: Browser,
) -> None:
    await enter(visitor)
    async with asyncio.timeout(30), visitor.http.stream("GET", "/changes") as listening:
        lines = listening.aiter_lines()
        assert await anext(lines) == "retry: 3000"
        await visitor.api.store.sessions.end_without(())
        visitor.api.store.signal.tell("jobs")
        heard = [line async for line in lines]
    assert "event: changed" not in heard


async def test_a_look_at_a_page_seldom_writes(timed: Timed) -> None:
    browser, clock = timed
    cookie = await enter(browser)
    seen = []
    for _ in range(7):
        await clock.advance(timedelta(minutes=1))
        await is_in(browser, cookie)
        [session] = await browser.api.store.sessions.list()
        seen.append(session.seen_at)
    assert len(set(seen)) == 2
