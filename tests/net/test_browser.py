"""The browser: fresh pages in a few places, watched, sieved, and speaking for themselves."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Error, Page

from mimawari.errors import BadInput, Invalid, Transient
from mimawari.installation import install_advice
from mimawari.kernel.clock import VirtualClock
from mimawari.net.browser import Browser
from mimawari.net.chromium import reason_of
from tests.net.little_site import (
    PROGRAM,
    LittleSite,
    fresh_browser,
    go_to,
    little_site,
    read_title,
    wait_for_ever,
)

WATCHDOG = timedelta(seconds=6)
PLACES = 3


@pytest.fixture(scope="module")
async def shared() -> AsyncIterator[Browser]:
    """One browser for the tests that do it no harm."""
    name = "mimawari/1 (+https://example.org)"
    async with fresh_browser(workers=PLACES, user_agent_suffix=name) as (browser, _):
        yield browser


@pytest.fixture
async def site() -> AsyncIterator[LittleSite]:
    async with little_site() as site:
        yield site


async def test_as_many_pages_are_open_at_once_as_there_are_places_and_no_more(
    shared: Browser, site: LittleSite
) -> None:
    barrier = asyncio.Barrier(PLACES)
    open_now, most = 0, 0

    async def work(page: Page) -> str:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await page.goto(site.url("/page"))
        # Nobody passes alone: with fewer places, this would wait for ever.
        await barrier.wait()
        open_now -= 1
        return await page.title()

    titles = await asyncio.gather(*(shared.use(work) for _ in range(6)))
    assert titles == ["/page"] * 6
    assert most == PLACES


async def test_each_page_is_fresh(shared: Browser, site: LittleSite) -> None:
    async def work(page: Page) -> object:
        await page.goto(site.url("/"))
        seen = await page.evaluate("[document.cookie, localStorage.length, history.length]")
        await page.evaluate("document.cookie = 'a=1'; localStorage.a = 1")
        return seen

    first = await shared.use(work)
    assert await shared.use(work) == first
    assert first[:2] == ["", 0]  # type: ignore[index]


async def test_pages_that_take_too_long_are_closed_and_their_browser_goes_on(
    shared: Browser, site: LittleSite
) -> None:
    site.pages["/never-ends"] = "<script>while (true) {}</script>"
    pages = []

    async def work(path: str | None, page: Page) -> None:
        pages.append(page)
        await (wait_for_ever(page) if path is None else page.goto(site.url(path)))

    before = shared.generation
    paths = ("/slow", "/never-ends", None)
    tasks = [shared.use(partial(work, path), task_for=WATCHDOG) for path in paths]
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    late = (Transient, "the page took longer than 6s")
    assert [(type(end), str(end)) for end in ends] == [late] * 3
    assert [page.is_closed() for page in pages] == [True] * 3
    assert await shared.use(read_title) == ""
    assert shared.generation == before


@pytest.mark.parametrize(
    "error", [Invalid("drift", page=b"x"), TimeoutError("its own"), KeyError("bug")]
)
async def test_what_the_work_raises_itself_is_not_changed(
    shared: Browser, error: Exception
) -> None:
    async def work(page: Page) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await shared.use(work)
    assert raised.value is error


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("http://127.0.0.1:{closed}/", "could not be loaded .net::ERR_CONNECTION_REFUSED"),
        ("http://127.0.0.1:{port}/reset", "could not be loaded .net::ERR_EMPTY_RESPONSE"),
        ("http://127.0.0.1:{port}/download", "could not be used: .*Download is starting"),
        ("http://127.0.0.1:1/", "could not be loaded .net::ERR_UNSAFE_PORT"),
        ("file:///etc/hostname", "could not be loaded .net::ERR_BLOCKED_BY_CLIENT"),
        ("no address", "could not be used: .*invalid URL"),
    ],
)
async def test_an_address_that_gives_no_page_may_be_tried_again(
    shared: Browser, site: LittleSite, address: str, reason: str
) -> None:
    async with little_site() as other:
        closed = other.port
    where = address.format(port=site.port, closed=closed)
    with pytest.raises(Transient, match=reason) as raised:
        await shared.use(partial(go_to, where))
    assert isinstance(raised.value.__cause__, Error)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("script", ["throw new Error('no')", "syntax error"])
async def test_a_script_that_fails_raises_no_error_of_the_driver(
    shared: Browser, script: str
) -> None:
    with pytest.raises(Transient, match="the page could not be used"):
        await shared.use(lambda page: page.evaluate(script))


async def test_waiting_in_vain_for_a_part_of_the_page_may_be_tried_again(shared: Browser) -> None:
    with pytest.raises(Transient, match="Timeout 100ms exceeded"):
        await shared.use(lambda page: page.wait_for_selector("#none", timeout=100))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Page.goto: net::ERR_TUNNEL_CONNECTION_FAILED at x", "the proxy refused the connection"),
        ("Page.goto: net::ERR_PROXY_CONNECTION_FAILED at x", "the proxy could not be reached"),
        ("Page.goto: net::ERR_HTTP2_PROTOCOL_ERROR at x", "(net::ERR_HTTP2_PROTOCOL_ERROR)"),
        ("a\x00b\nCall log:\n - c", "the page could not be used: a\ufffdb"),
        ("", "the page could not be used: "),
        ("x" * 10_000, "x…"),
    ],
)
def test_the_reason_is_said_in_one_short_line(text: str, reason: str) -> None:
    said = reason_of(Error(text))
    assert reason in said
    assert len(said) < 400
    assert "\n" not in said


async def test_a_page_that_crashes_ends_its_work_at_once_and_no_other(
    shared: Browser, site: LittleSite
) -> None:
    async def crash(page: Page) -> None:
        with contextlib.suppress(Error):
            await page.goto("chrome://crash")
        await wait_for_ever(page)

    async def other(page: Page) -> str:
        await page.goto(site.url("/slow"))
        return await page.title()

    beside = asyncio.create_task(shared.use(other))
    await site.wait_for("/slow")
    with pytest.raises(Transient, match="the page crashed"):
        await shared.use(crash)
    await site.release("/slow")
    assert await beside == "/slow"


async def test_a_page_sees_a_plain_japanese_desktop_that_says_what_it_is(
    shared: Browser, site: LittleSite
) -> None:
    async def work(page: Page) -> object:
        await page.goto(site.url("/"))
        return await page.evaluate(
            "[navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone,"
            " innerWidth, innerHeight, navigator.webdriver]"
        )

    assert await shared.use(work) == ["ja-JP", "Asia/Tokyo", 1366, 900, True]
    headers = site.asked[0].headers
    assert headers["accept-language"].startswith("ja-jp")
    assert "headlesschrome/" in headers["user-agent"]
    assert headers["user-agent"].endswith(" mimawari/1 (+https://example.org)")


async def test_nothing_is_fetched_that_is_not_read(shared: Browser, site: LittleSite) -> None:
    site.pages["/"] = """
        <style>@font-face { font-family: f; src: url(/font.woff2) }
               p { font-family: f; background: url(/background.png) }</style>
        <link rel=icon href=/icon.png><link rel=stylesheet href=/style.css>
        <p>text</p><iframe src=/frame></iframe>
        <script>
          const failing = (tag, from) => new Promise(done => {
            const one = document.createElement(tag);
            one.onerror = done; one.src = from; document.body.append(one); });
          const socket = () => new Promise(done => {
            new WebSocket('ws://' + location.host + '/socket').onclose = done; });
          const asked = window.confirm('Sure?');
          const opened = [window.open('/window'), window.open('/lonely', '', 'noopener')];
          window.seen = Promise.all([
            failing('img', '/image.png'), failing('video', '/film.mp4'), socket(),
            document.fonts.ready, fetch('/found').then(found => found.text()),
            navigator.serviceWorker.register('/worker.js').then(() => 0, () => 0),
            navigator.permissions.query({name: 'geolocation'}).then(found => found.state),
          ]).then(all => [asked, all[6]]);
        </script>"""

    async def work(page: Page) -> None:
        icon = site.url("/icon.png")
        async with page.expect_event("requestfailed", lambda one: bool(one.url == icon)):
            await page.goto(site.url("/"))
        assert await page.evaluate("window.seen") == [False, "denied"]
        assert sorted(set(site.paths())) == ["/", "/found", "/frame", "/style.css"]

    await shared.use(work)


async def test_a_new_window_is_closed(shared: Browser, site: LittleSite) -> None:
    async def work(page: Page) -> list[Page]:
        await page.goto(site.url("/"))
        async with page.context.expect_page() as opened:
            await page.evaluate("void window.open('/window')")
        window = await opened.value
        if not window.is_closed():
            await window.wait_for_event("close")
        return [one for one in page.context.pages if one is not page]

    assert await shared.use(work) == []
    assert site.paths() == ["/"]


async def test_everything_passes_through_the_proxy_loopback_too(site: LittleSite) -> None:
    names = ("127.0.0.1", "localhost", "[::1]")
    async with little_site() as proxy:
        address = f"http://127.0.0.1:{proxy.port}"
        async with fresh_browser(proxy=address) as (browser, _):
            for name in names:
                await browser.use(partial(go_to, f"http://{name}:{site.port}/"))
            with pytest.raises(Transient, match="the proxy refused the connection"):
                await browser.use(partial(go_to, f"https://127.0.0.1:{site.port}/"))
    asked = {(one.method, one.path) for one in proxy.asked if "favicon" not in one.path}
    # The whole of it: Chromium asks for nothing of its own accord either.
    assert asked == {
        *(("GET", f"http://{name}:{site.port}/") for name in names),
        ("CONNECT", f"127.0.0.1:{site.port}"),
    }
    assert site.asked == []


@pytest.mark.parametrize("name", ["nowhere/chromium", "plain-file", "."])
async def test_a_chromium_that_is_not_there_is_said_to_be_missing(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "plain-file").touch()
    async with Browser(VirtualClock(), executable=str(tmp_path / name)) as browser:
        with pytest.raises(BadInput, match="install the Debian package chromium"):
            await browser.use(read_title)


async def test_a_machine_without_chromium_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    async with Browser(VirtualClock()) as browser:
        with pytest.raises(BadInput, match="no Chromium was found; install the Debian package"):
            await browser.use(read_title)


async def test_an_installation_without_playwright_is_told_what_to_install() -> None:
    program = (
        "import sys; sys.modules['playwright'] = sys.modules['playwright.async_api'] = None\n"
        + PROGRAM.replace("asyncio.run(", "try:\n    asyncio.run(")
        + "except Exception as error:\n    print(type(error).__name__, error)\n"
    )
    done = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    said, _ = await done.communicate()
    assert f"BadInput Playwright is missing; {install_advice('browser')}".encode() in said


async def test_a_program_that_is_no_chromium_is_tried_again_and_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho no such luck >&2\nexit 1\n")
    broken.chmod(0o755)
    async with fresh_browser(executable=str(broken)) as (browser, _):
        for _ in range(2):
            with pytest.raises(Transient, match="could not be started: no such luck"):
                await browser.use(read_title)


@pytest.mark.parametrize("node", ["/bin/false", "/nowhere/node"])
async def test_a_driver_that_does_not_start_may_be_tried_again(
    node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYWRIGHT_NODEJS_PATH", node)
    async with fresh_browser() as (browser, _):
        with pytest.raises(Transient, match="the browser's driver did not start"):
            await browser.use(read_title)


@pytest.mark.parametrize("name", ["mimawari\r\nX-Evil: 1", "見回り", "a\x00b"])
def test_a_name_that_fits_no_header_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="printable ASCII"):
        Browser(VirtualClock(), user_agent_suffix=name)
