"""Logging in: how often, from where, and with which cookies behind which proxy."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.web.session import BROWSER, COOKIE, Sessions, make_once
from mimawari.web.site import ATTEMPTS, ATTEMPTS_OF_ALL, ATTEMPTS_PER
from tests.app.ground import KEY, KEYS
from tests.conftest import Databases
from tests.web.ground import Browser, open_site

WAIT = ATTEMPTS_PER / ATTEMPTS


@pytest.fixture
async def door(databases: Databases, tmp_path: Path, clock: VirtualClock) -> AsyncIterator[Browser]:
    """The site behind a proxy, to which anybody may come from any address."""
    given: dict[str, Any] = {"clock": clock, "trusted_proxies": ("127.0.0.1",)}
    async with open_site(await databases.ready(), tmp_path, **given) as browser:
        yield browser


async def attempt(door: Browser, address: str, key: str = "wrong", cookie: str = "") -> int:
    """Try a key from an address; return the status."""
    headers = {"X-Forwarded-For": address} | ({"Cookie": cookie} if cookie else {})
    async with httpx2.AsyncClient(base_url=door.api.address) as http:
        response = await http.post("/login", data={"key": key}, headers=headers)
    if response.status_code == 429:
        assert int(response.headers["retry-after"]) >= 1
        assert "mimawari link" in response.text
    return response.status_code


async def use_up(door: Browser) -> None:
    """Use up the attempts of all, from many addresses."""
    for number in range(ATTEMPTS_OF_ALL):
        assert await attempt(door, f"198.51.100.{number}") == 401
    assert await attempt(door, "198.51.100.200") == 429


async def test_an_address_may_try_ten_keys_and_then_one_a_minute(
    door: Browser, clock: VirtualClock
) -> None:
    assert [await attempt(door, "192.0.2.1") for _ in range(ATTEMPTS + 2)] == [
        *[401] * ATTEMPTS,
        *[429] * 2,
    ]
    # A right key is not looked at either: a guess would be told by it.
    assert await attempt(door, "192.0.2.1", KEY) == 429
    assert await attempt(door, "192.0.2.2", KEY) == 303
    await clock.advance(WAIT)
    assert await attempt(door, "192.0.2.1", KEY) == 303
    await clock.advance(WAIT)
    assert [await attempt(door, "192.0.2.1") for _ in range(2)] == [401, 429]


async def test_whoever_has_a_network_has_no_more_attempts(door: Browser) -> None:
    tried = [await attempt(door, f"2001:db8::{number:x}") for number in range(ATTEMPTS + 1)]
    assert tried == [*[401] * ATTEMPTS, 429]
    assert await attempt(door, "2001:db8:0:1::1") == 401


async def test_all_together_may_try_a_hundred_and_nobody_is_locked_out_by_them(
    door: Browser, clock: VirtualClock
) -> None:
    known = await door.http.post("/login", data={"key": KEY})
    mark = f"{BROWSER}={known.cookies[BROWSER]}"
    await clock.advance(ATTEMPTS_PER)
    await use_up(door)
    # Who has been here before is counted by itself, wherever it comes from.
    assert await attempt(door, "198.51.100.201", KEY, mark) == 303
    # A session goes on, an API key too, and a link lets in whoever has none.
    async with httpx2.AsyncClient(base_url=door.api.address) as http:
        cookie = {"Cookie": f"{COOKIE}={known.cookies[COOKIE]}"}
        assert (await http.get("/", headers=cookie)).status_code == 200
        assert (await http.get("/api/status", headers={"X-API-Key": KEY})).status_code == 200
        word = await make_once(door.api.store.sessions)
        assert (await http.get(f"/login?once={word}")).headers["location"] == "/"
    await clock.advance(ATTEMPTS_PER / ATTEMPTS_OF_ALL)
    assert await attempt(door, "198.51.100.202", KEY) == 303


async def test_one_address_does_not_use_up_the_attempts_of_all(door: Browser) -> None:
    for _ in range(ATTEMPTS_OF_ALL + 10):
        await attempt(door, "192.0.2.1")
    assert await attempt(door, "192.0.2.2") == 401


async def test_a_browser_that_was_here_may_not_guess_without_end_either(door: Browser) -> None:
    known = await door.http.post("/login", data={"key": KEY})
    mark = f"{BROWSER}={known.cookies[BROWSER]}"
    tried = [await attempt(door, f"192.0.2.{n}", cookie=mark) for n in range(ATTEMPTS + 1)]
    assert tried == [*[401] * ATTEMPTS, 429]


@pytest.mark.parametrize("mark", ["", "a.b", "a", ".", "a." + "0" * 64])
async def test_a_mark_that_nobody_made_is_none(door: Browser, mark: str) -> None:
    sessions = door.api.system.store.sessions
    made = [await attempt(door, "192.0.2.1", cookie=f"{BROWSER}={mark}")
            for _ in range(ATTEMPTS + 1)]  # fmt: skip
    assert made[-1] == 429
    assert await sessions.list() == []


async def test_a_mark_opens_nothing_and_dies_with_its_key(door: Browser) -> None:
    known = await door.http.post("/login", data={"key": KEY})
    mark = known.cookies[BROWSER]
    async with httpx2.AsyncClient(base_url=door.api.address) as http:
        for name in (BROWSER, COOKIE):
            found = await http.get("/", headers={"Cookie": f"{name}={mark}"})
            assert found.headers["location"] == "/login"
    kept, clock = door.api.store.sessions, door.api.system.clock
    assert Sessions(KEYS, kept, clock).find_mark(mark) is not None
    assert Sessions(KEYS[1:], kept, clock).find_mark(mark) is None


@pytest.mark.parametrize(
    ("given", "headers", "is_secure"),
    [
        ({}, {}, False),
        ({"public_url": "https://watch.example"}, {}, True),
        ({"public_url": "https://watch.example"}, {"Host": "watch.example"}, True),
        ({"public_url": "http://watch.example"}, {"Host": "watch.example"}, False),
        # Only of a proxy that is trusted it is believed.
        ({}, {"X-Forwarded-Proto": "https"}, False),
        ({"trusted_proxies": ("127.0.0.1",)}, {"X-Forwarded-Proto": "https"}, True),
        ({"trusted_proxies": ("127.0.0.1",)}, {"X-Forwarded-Proto": "http"}, False),
        ({"trusted_proxies": ("10.0.0.1",)}, {"X-Forwarded-Proto": "https"}, False),
    ],
)
async def test_cookies_are_for_tls_alone_where_people_come_by_it(
    databases: Databases,
    tmp_path: Path,
    given: dict[str, Any],
    headers: dict[str, str],
    is_secure: bool,
) -> None:
    async with open_site(await databases.ready(), tmp_path, **given) as browser:
        entered = await browser.http.post("/login", data={"key": KEY}, headers=headers)
    cookies = entered.headers.get_list("set-cookie")
    assert {one.partition("=")[0] for one in cookies} == {COOKIE, BROWSER}
    for cookie in cookies:
        assert ("Secure" in cookie) is is_secure
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_form_of_another_site_does_nothing_whatever_it_brings(
    visitor: Browser, origin: str
) -> None:
    sent = {"token": await visitor.token()}
    refused = await visitor.http.post("/logout", data=sent, headers={"Origin": origin})
    assert refused.status_code == 403
    assert "MIMAWARI_PUBLIC_URL" in refused.text
    assert "<main" in await visitor.see("/")
    # Nor does it log somebody in as somebody else.
    entered = await visitor.http.post("/login", data={"key": KEY}, headers={"Origin": origin})
    assert (entered.status_code, "set-cookie" in entered.headers) == (403, False)
    ours = {"Origin": visitor.api.address, "Sec-Fetch-Site": "same-origin"}
    assert (await visitor.http.post("/logout", data=sent, headers=ours)).status_code == 303


async def test_the_first_attempts_after_a_long_time_are_as_many_as_ever(
    door: Browser, clock: VirtualClock
) -> None:
    await use_up(door)
    await clock.advance(timedelta(days=1))
    await use_up(door)
