"""`mimawari demo`: one command, five watches alive, nothing beyond this machine, nothing left."""

import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from mimawari.app.demo.cast import STARTS_AT, TRADED, WATCHED
from mimawari.app.demo.past import DAYS, Inside, Stall
from mimawari.app.demo.run import find_anchor
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.mercari.market import Wanted
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.sites.mercari import Query, Side
from mimawari.sites.mercari.api import ApiMarket
from tests.app.demo_visit import Demo, run_demo
from tests.app.terminal import PATIENCE_SECONDS, Terminal, wait_for

ALONE = ("unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh")
"""Runs a command on a machine that has no network but loopback."""


def can_be_alone() -> bool:
    """Say whether this machine lets us take the network away."""
    try:
        return subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def test_the_demo_ends_by_itself_without_a_network_and_leaves_nothing_behind(
    terminal: Terminal,
) -> None:
    before = ALONE if can_be_alone() else ()
    with run_demo(terminal, "--seconds", "3", before=before) as demo:
        assert "look" in demo.facts()
        assert demo.process.wait(PATIENCE_SECONDS) == 0
        assert demo.err.read_text() == ""
        assert list(demo.folder.iterdir()) == []
        assert demo.left() == []
    assert not terminal.data.exists()


def is_alive(demo: Demo) -> bool:
    """Say whether there is something of all five watches."""
    days = demo.ask("/api/v1/ips/1/stats/daily?limit=40")["periods"]
    events = [one["body"]["event_type"] for one in demo.tell("hooks")["deliveries"]]
    return (
        len(demo.ask("/api/v1/leaderboard")["entries"]) == len(WATCHED)
        and len(days) >= DAYS - 2
        and bool(demo.ask("/api/prices/alerts")["alerts"])
        and bool(demo.ask("/api/changes/recent?kind=rent")["changes"])
        and demo.ask("/api/queue/stats")["pending"] > 0
        and demo.tell("mail")["count"] > 0
        and "stream.started" in events
        and "sent" in [one["state"] for one in demo.ask("/api/notify/targets/1/sends")["sends"]]
    )


def test_the_demo_shows_five_watches_alive_on_loopback_alone_until_it_is_interrupted(
    terminal: Terminal,
) -> None:
    with run_demo(terminal) as demo:
        with demo.visit() as browser:
            assert 'class="banner"' in browser.get("/").text
            # A link is good for once.
            assert browser.get(demo.facts()["look"]).url.path == "/login"
            wait_for(lambda: is_alive(demo))
            wait_for(lambda: "配信開始" in browser.get("/").text)
        assert all(one["is_verified"] for one in demo.tell("hooks")["deliveries"])
        assert demo.stop() == 0
        assert demo.err.read_text() == ""
        assert list(demo.folder.iterdir()) == []
        assert demo.left() == []
        assert demo.addresses() != set()
        assert {one for one in demo.addresses() if "'127.0.0.1'" not in one} == set()
    assert not terminal.data.exists()


@pytest.mark.parametrize("scale", [2.0, 60.0, 300.0])
def test_the_time_of_a_demo_begins_where_its_past_ends(scale: float) -> None:
    now = datetime(2031, 5, 6, 7, 8, tzinfo=UTC)
    anchor = find_anchor(scale, now)
    off = anchor + (now - anchor) * scale - STARTS_AT
    assert abs(off) < timedelta(seconds=1)


@pytest.mark.parametrize("keyword", ["ラグナブルー", "ガラクタ王国"])
async def test_the_past_is_what_the_reader_of_the_site_would_have_read(keyword: str) -> None:
    clock, url = VirtualClock(STARTS_AT - timedelta(days=DAYS)), "http://world.test"
    site = MarketSite(clock, 1, TRADED)
    stall = Stall(site.market, url)
    market = ApiMarket(Inside(World(clock, (site,), 1)), url, clock)
    for _ in range(3):
        await clock.advance(timedelta(days=1))
        pages = [await market.search_page(Query(keyword=keyword, side=side)) for side in Side]
        read = {(one.id, one.status): one for page in pages for one in page.items}
        shown = {(one.id, one.status): one for one in stall.show(Wanted(keyword=keyword)).items}
        assert len(read) > 30
        assert read.items() <= shown.items()
