"""One proxy is held while it works; the next healthy one is taken when it does not."""

import asyncio
import io
import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
import structlog
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari import log
from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.net.proxies import Egress, ProxyUrl, Reason, connect_probe, parse_proxy
from tests.net.sockets import free_port, open_proxy

URLS = [f"http://user:hunter2@proxy-{number}.example:3128" for number in range(3)]
FIRST, SECOND, THIRD = (parse_proxy(url) for url in URLS)


class Checks:
    """Says which proxies are healthy, and remembers who was asked about."""

    def __init__(self, *sick: ProxyUrl) -> None:
        self.sick = set(sick)
        self.asked: list[ProxyUrl] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, proxy: ProxyUrl) -> bool:
        """Say whether a proxy is healthy, once the gate is open."""
        self.asked.append(proxy)
        await self.open.wait()
        return proxy not in self.sick


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Everything logged, as it is written."""
    written = io.StringIO()
    log.configure("debug", written)
    yield written
    structlog.reset_defaults()


def read(lines: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


async def fail(egress: Egress, times: int, reason: Reason = "blocked") -> None:
    """Fail some times in a row through the proxy in use."""
    for _ in range(times):
        await egress.failed(reason, egress.current)


async def test_without_proxies_nothing_changes(clock: VirtualClock) -> None:
    checks = Checks()
    egress = Egress([], clock, checks)
    assert egress.current is None
    await fail(egress, 50)
    egress.worked(None)
    assert egress.current is None
    assert checks.asked == []


@pytest.mark.parametrize("reason", ["blocked", "timeout", "network"])
async def test_the_next_proxy_is_taken_at_the_tenth_failure_in_a_row(
    clock: VirtualClock, reason: Reason
) -> None:
    checks = Checks()
    egress = Egress(URLS, clock, checks)
    await fail(egress, 9, reason)
    assert (egress.current, checks.asked) == (FIRST, [])
    await fail(egress, 1, reason)
    assert (egress.current, checks.asked) == (SECOND, [SECOND])


async def test_a_success_starts_the_count_anew(clock: VirtualClock) -> None:
    egress = Egress(URLS, clock, Checks())
    for _ in range(5):
        await fail(egress, 9)
        egress.worked(FIRST)
    assert egress.current == FIRST
    await fail(egress, 10)
    assert egress.current == SECOND


async def test_the_success_of_a_proxy_that_was_left_says_nothing(clock: VirtualClock) -> None:
    egress = Egress(URLS, clock, Checks())
    await fail(egress, 19)
    egress.worked(FIRST)
    await fail(egress, 1)
    assert egress.current == THIRD


async def test_a_sick_candidate_is_passed_over(clock: VirtualClock) -> None:
    checks = Checks(SECOND)
    egress = Egress(URLS, clock, checks)
    await fail(egress, 10)
    assert (egress.current, checks.asked) == (THIRD, [SECOND, THIRD])


async def test_the_present_proxy_stays_when_no_other_is_healthy(
    clock: VirtualClock, lines: io.StringIO
) -> None:
    checks = Checks(SECOND, THIRD)
    egress = Egress(URLS, clock, checks)
    await fail(egress, 19)
    assert (egress.current, checks.asked) == (FIRST, [SECOND, THIRD])
    (line,) = read(lines)
    assert (line["level"], line["component"]) == ("WARN", "egress")
    assert line["data"]["result"] == "kept"
    assert line["data"]["next"] == line["data"]["what"] == "http://proxy-0.example:3128"
    checks.sick.clear()
    await fail(egress, 1)
    assert egress.current == SECOND


async def test_one_proxy_alone_stays(clock: VirtualClock) -> None:
    egress = Egress(URLS[:1], clock, Checks())
    await fail(egress, 100)
    assert egress.current == FIRST


async def test_a_proxy_named_twice_is_one_proxy(clock: VirtualClock) -> None:
    egress = Egress([URLS[0], f"{URLS[0]}/"], clock, Checks())
    await fail(egress, 10)
    assert egress.current == FIRST


async def test_a_proxy_that_was_left_rests_for_half_an_hour(clock: VirtualClock) -> None:
    checks = Checks()
    egress = Egress(URLS[:2], clock, checks)
    await fail(egress, 10)
    await clock.advance(timedelta(minutes=29, seconds=59))
    await fail(egress, 10)
    assert (egress.current, checks.asked) == (SECOND, [SECOND])
    await clock.advance(timedelta(seconds=1))
    await fail(egress, 10)
    assert egress.current == FIRST


@pytest.mark.parametrize("hours", [-1, 1])
async def test_turning_the_wall_clock_changes_no_rest(clock: VirtualClock, hours: int) -> None:
    egress = Egress(URLS[:2], clock, Checks())
    await fail(egress, 10)
    clock.step(timedelta(hours=hours))
    await fail(egress, 10)
    assert egress.current == SECOND
    await clock.advance(timedelta(minutes=30))
    await fail(egress, 10)
    assert egress.current == FIRST


@pytest.mark.parametrize("tasks", [20, 200])
async def test_many_tasks_that_fail_at_once_switch_once(clock: VirtualClock, tasks: int) -> None:
    checks = Checks()
    checks.open.clear()
    egress = Egress(URLS, clock, checks)
    used = egress.current

    async def work() -> None:
        await egress.failed("timeout", used)

    works = [asyncio.create_task(work()) for _ in range(tasks)]
    done, waiting = await asyncio.wait(works, timeout=30, return_when=asyncio.FIRST_COMPLETED)
    while len(waiting) > 1:
        done, waiting = await asyncio.wait(waiting, timeout=30, return_when="FIRST_COMPLETED")
        assert done
    # Only the one who looks for the next proxy waits for the answer.
    checks.open.set()
    await asyncio.gather(*works)
    assert (egress.current, checks.asked) == (SECOND, [SECOND])
    # Nor do those failures count against the new one.
    await fail(egress, 9)
    assert egress.current == SECOND


async def test_failures_that_come_in_late_do_not_count_for_the_new_proxy(
    clock: VirtualClock,
) -> None:
    egress = Egress(URLS, clock, Checks())
    await fail(egress, 10)
    for _ in range(50):
        await egress.failed("network", FIRST)
    assert egress.current == SECOND


async def test_who_is_cancelled_while_looking_leaves_it_to_the_next(clock: VirtualClock) -> None:
    checks = Checks()
    checks.open.clear()
    egress = Egress(URLS, clock, checks)
    await fail(egress, 9)
    looking = asyncio.create_task(fail(egress, 1))
    while not checks.asked:
        await asyncio.wait([looking], timeout=0.001)
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking
    assert egress.current == FIRST
    checks.open.set()
    await fail(egress, 1)
    assert egress.current == SECOND


async def test_under_load_each_proxy_has_its_ten_failures_before_it_is_left(
    clock: VirtualClock,
) -> None:
    checks = Checks()
    egress = Egress(URLS, clock, checks)
    counts = dict.fromkeys((FIRST, SECOND, THIRD), 0)

    async def work() -> None:
        for _ in range(25):
            used = egress.current
            assert used is not None
            counts[used] += 1
            await clock.sleep(timedelta(seconds=1))
            await egress.failed("blocked", used)

    works = [asyncio.create_task(work()) for _ in range(20)]
    for _ in range(27):
        await clock.advance(timedelta(seconds=1))
    await asyncio.gather(*works)
    # Nine of the twenty were back at work with the same proxy before the tenth failed.
    assert counts[FIRST] == counts[SECOND] == 29
    # Both others rest, so the third stays however badly it does.
    assert (egress.current, checks.asked) == (THIRD, [SECOND, THIRD])


async def test_a_switch_is_told_without_the_password(
    clock: VirtualClock, lines: io.StringIO
) -> None:
    egress = Egress(URLS, clock, Checks())
    await fail(egress, 10, "timeout")
    (line,) = read(lines)
    assert line["component"] == "egress"
    assert line["data"] == {
        "who": "egress",
        "what": "http://proxy-0.example:3128",
        "result": "left",
        "reason": "10 failures in a row, the last: timeout",
        "next": "http://proxy-1.example:3128",
    }
    assert "hunter2" not in lines.getvalue() + repr(FIRST) + str(FIRST)


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://proxy.example:3128", ProxyUrl("proxy.example", 3128)),
        ("HTTP://Proxy.Example:3128/", ProxyUrl("proxy.example", 3128)),
        ("http://proxy.example", ProxyUrl("proxy.example", 80)),
        ("http://10.0.0.1:1", ProxyUrl("10.0.0.1", 1)),
        ("http://[::1]:65535", ProxyUrl("::1", 65535)),
        ("http://u:p%40w@proxy:8080", ProxyUrl("proxy", 8080, "u", "p@w")),
        ("http://u@proxy:8080", ProxyUrl("proxy", 8080, "u")),
    ],
)
def test_a_proxy_is_read_from_its_address(url: str, proxy: ProxyUrl) -> None:
    assert parse_proxy(url) == proxy


@pytest.mark.parametrize(
    "url",
    [
        "",
        "proxy:3128",
        "//proxy:3128",
        "https://u:hunter2@proxy:3128",
        "socks5://u:hunter2@proxy:1080",
        "http://",
        "http://:3128",
        "http://u:hunter2@",
        "http://u:hunter2@:3128",
        "http://u:hunter2@proxy:0",
        "http://u:hunter2@proxy:65536",
        "http://u:hunter2@proxy:port",
        "http://u:hunter2",
        "http://u:hunter2@proxy:3128/path",
        "http://u:hunter2@proxy:3128?query",
        "http://u:hunter2@proxy:3128#part",
        "http://u:hunter2@pro xy:3128",
        "http://u:hunter2@proxy:3128\n",
        "http://u:hunter2@proxy\x00:3128",
        "http://u:hunter2@pr\u00f6xy:3128",
        "http://u:hunter2%0d%0a@proxy:3128",
        "http://u%3ax:hunter2@proxy:3128",
        "http://u:hunter2@[::1:3128",
        "http://u:hunter2@[::1%25lo]:3128",
        "http://u:hunter2@" + "a" * 64 + ":3128",
        "http://u:hunter2@a..b:3128",
    ],
)
def test_a_proxy_that_cannot_be_used_is_refused_without_its_password(
    url: str, clock: VirtualClock
) -> None:
    with pytest.raises(BadInput) as caught:
        Egress([URLS[0], url], clock, Checks())
    assert "hunter2" not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__cause__ is None


@settings(deadline=None, derandomize=True, max_examples=500)
@given(st.one_of(st.text(), st.text().map(lambda text: f"http://{text}")))
def test_no_address_of_a_proxy_raises_anything_but_bad_input(url: str) -> None:
    with suppress(BadInput):
        parse_proxy(url)


@pytest.mark.parametrize(
    ("reply", "healthy"),
    [
        (b"HTTP/1.1 200 Connection established\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nVia: a\r\n\r\n", True),
        (b"HTTP/1.1 299\r\n\r\n", True),
        (b"HTTP/1.1 407 Login\r\n\r\n", False),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", False),
        (b"HTTP/1.1 199 Odd\r\n\r\n", False),
        (b"HTTP/1.1 300 Odd\r\n\r\n", False),
        (b"220 mail ready\r\n\r\n", False),
        (b"", False),
    ],
)
async def test_a_proxy_is_healthy_when_it_opens_a_tunnel_to_a_known_host(
    reply: bytes, *, healthy: bool
) -> None:
    async with open_proxy(free_port(), reply) as proxy:
        url = parse_proxy(f"http://user:word@127.0.0.1:{proxy.port}")
        assert await connect_probe("known.example")(url) is healthy
    assert proxy.asked == ["known.example:443"]


async def test_a_proxy_that_is_not_there_is_not_healthy(lines: io.StringIO) -> None:
    url = parse_proxy(f"http://user:hunter2@127.0.0.1:{free_port()}")
    assert await connect_probe("known.example")(url) is False
    (line,) = read(lines)
    assert line["data"]["what"] == str(url)
    assert "hunter2" not in lines.getvalue()
