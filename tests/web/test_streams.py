"""The pages of streams: the wall, a monitor with its lanes and events, adding and stopping."""

import html
import json
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from markupsafe import escape

from mimawari.kernel.clock import VirtualClock
from mimawari.watches.streams import actions, queries
from mimawari.watches.streams.models import EventType, Heard, Sense, Status, StreamStatus
from mimawari.web.streams import EVENTS, OVER
from mimawari.web.streams_lanes import Span, fill, list_senses, list_states
from tests.conftest import Databases
from tests.web.ground import Browser, open_site
from tests.web.scene import (
    CALLBACK,
    GIVEN,
    HOSTILE,
    MINUTE,
    PICTURE,
    add_monitor,
    keep,
    notice,
    url_of,
)

ENGLISH = {"Accept-Language": "en"}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def visitor(
    databases: Databases, tmp_path: Path, clock: VirtualClock
) -> AsyncIterator[Browser]:
    """Somebody who is logged in where monitors can be added."""
    async with open_site(await databases.ready(), tmp_path, clock=clock, **GIVEN) as browser:
        await browser.log_in()
        yield browser


def words_of(page: str) -> str:
    """Return what a page says, without its tags."""
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", page).split()))


async def test_an_empty_wall_says_what_to_do(visitor: Browser) -> None:
    assert "監視中の配信はありません" in await visitor.see("/streams")
    assert "Nothing is monitored" in await visitor.see("/streams", **ENGLISH)


async def test_without_a_key_to_sign_with_the_wall_says_which_to_set(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_site(await databases.ready(), tmp_path) as browser:
        await browser.log_in()
        assert "WEBHOOK_SIGNING_KEY" in await browser.see("/streams")
        sent = {"stream_url": url_of(1), "callback_url": CALLBACK}
        refused = await browser.send("/streams/new", **sent)
        assert refused.status_code == 422
        assert 'role="alert"' in refused.text


async def test_a_card_says_how_a_monitor_stands_and_when_it_is_looked_at_next(
    visitor: Browser, clock: VirtualClock
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system)
    await keep(system, monitor, title="Harbour", told=(Sense.SILENCE,))
    clock.step(timedelta(seconds=30))
    said = words_of(await visitor.see("/streams", **ENGLISH))
    assert "Harbour monitoring · live Picture well Sound silent" in said
    assert "Last check 30 s ago Next look 30 s ago · just added" in said


async def test_those_in_alert_are_first_on_the_wall(visitor: Browser) -> None:
    system = visitor.api.system
    bad = await add_monitor(system, 1)
    await keep(system, bad, title="Bad", told=(Sense.BLACKOUT,))
    await keep(system, await add_monitor(system, 2), title="Well")
    page = await visitor.see("/streams")
    assert page.index(">Bad<") < page.index(">Well<")
    assert page.count('class="card bad"') == 1


@pytest.mark.parametrize(("passed", "said"), [(-300, "-0:05:00"), (90, "+0:01:30")])
async def test_a_monitor_that_waits_shows_a_clock(
    visitor: Browser, clock: VirtualClock, passed: int, said: str
) -> None:
    system = visitor.api.system
    due = clock.now() - timedelta(seconds=passed)
    monitor = await add_monitor(system, scheduled_start_time=due, start_delay_tolerance_sec=120)
    await keep(system, monitor, status=Status.WAITING, stream=StreamStatus.UPCOMING)
    for path in ("/streams", f"/streams/{monitor.id}"):
        page = await visitor.see(path, **ENGLISH)
        assert f'data-clock="{passed}"' in page
        assert said in page
        assert "told as late after 2 min" in page


async def test_one_that_is_live_shows_no_clock(visitor: Browser, clock: VirtualClock) -> None:
    monitor = await add_monitor(visitor.api.system, scheduled_start_time=clock.now())
    await keep(visitor.api.system, monitor)
    assert "data-clock" not in await visitor.see("/streams")


async def test_those_that_are_over_come_a_page_at_a_time(visitor: Browser) -> None:
    system = visitor.api.system
    for number in range(OVER + 1):
        monitor = await add_monitor(system, number)
        await keep(system, monitor, title=f"Show {number}.")
        await actions.stop(system, monitor.id)
    first, second = [await visitor.see(f"/streams?offset={at}") for at in (0, OVER)]
    assert [f">Show {n}.<" in first for n in (0, 1, OVER)] == [False, True, True]
    assert [f">Show {n}.<" in second for n in (0, 1, OVER)] == [True, False, False]
    assert "依頼により停止" in first


async def test_a_monitor_is_shown_with_its_events_and_what_became_of_them(
    visitor: Browser, clock: VirtualClock
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system)
    now = clock.now()
    events = [
        notice(EventType.STARTED, now, started_at=now),
        notice(EventType.BLACKOUT, now + MINUTE, started_at=now, snapshot=PICTURE),
    ]
    await keep(system, monitor, *events)
    page = await visitor.see(f"/streams/{monitor.id}", **ENGLISH)
    assert "Stream started" in page
    assert "on its way" in page
    assert f'src="{PICTURE}"' in page
    assert page.count(PICTURE) == 1
    assert "letmein" not in page
    assert "http://127.0.0.1:9/***" in page


async def test_a_hostile_title_stays_text(visitor: Browser, clock: VirtualClock) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system)
    event = notice(EventType.STARTED, clock.now(), title=HOSTILE)
    await keep(system, monitor, event, title=HOSTILE)
    for path in ("/streams", f"/streams/{monitor.id}"):
        page = await visitor.see(path)
        assert "<script>alert" not in page
        assert '" onload=' not in page
        assert escape(HOSTILE) in page


async def test_events_come_a_page_at_a_time_and_as_a_file(
    visitor: Browser, clock: VirtualClock
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system)
    now = clock.now()
    events = [notice(EventType.SILENCE, now + MINUTE * n) for n in range(EVENTS + 1)]
    await keep(system, monitor, *events)
    path = f"/streams/{monitor.id}"
    assert (await visitor.see(path)).count("<tr>") == EVENTS + 1
    assert (await visitor.see(f"{path}?offset={EVENTS}")).count("<tr>") == 2
    file = await visitor.get(f"{path}?format=csv")
    assert file.headers["content-type"].startswith("text/csv")
    assert len(file.text.splitlines()) == EVENTS + 2


async def test_a_monitor_nobody_knows_is_not_found(visitor: Browser) -> None:
    assert (await visitor.get("/streams/mon-x")).status_code == 404
    assert (await visitor.send("/streams/mon-x/stop")).status_code == 404


async def test_a_monitor_is_added_with_all_that_was_typed(visitor: Browser) -> None:
    system = visitor.api.system
    visitor.http.cookies.set("zone", "Asia/Tokyo")
    typed = {
        "stream_url": url_of(7),
        "callback_url": CALLBACK,
        "check_interval_sec": "5",
        "silence_db_threshold": "-42.5",
        "scheduled_start_time": "2026-01-02T09:00",
        "freeze_threshold_sec": "20",
        "maintenance_from": "2026-01-02T10:00",
        "maintenance_to": "2026-01-02T11:00",
        "snapshot": "1",
        "metadata": '{"a": 1}',
    }
    added = await visitor.send("/streams/new", **typed)
    assert added.status_code == 303, added.text
    monitor = (await actions.find(system, added.headers["location"].rpartition("/")[2])).monitor
    config = monitor.config
    assert (config.check_interval_sec, config.silence_db_threshold) == (5, -42.5)
    assert str(config.scheduled_start_time) == "2026-01-02 00:00:00+00:00"
    assert (config.freeze_threshold_sec, config.bars_threshold_sec) == (20, None)
    assert (config.snapshot, config.missing_audio_is_silence) == (True, False)
    assert str(config.maintenance[0].end) == "2026-01-02 02:00:00+00:00"
    assert (monitor.metadata, monitor.stream_url) == ({"a": 1}, url_of(7))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"stream_url": "https://example.org/"}, "youtube"),
        ({"callback_url": "ftp://x"}, "callback"),
        ({"callback_url": "https://10.0.0.1/"}, "MIMAWARI_ALLOW_HOSTS"),
        ({"check_interval_sec": "0"}, "Look every (seconds)"),
        ({"check_interval_sec": "2.5"}, "Look every (seconds)"),
        ({"silence_db_threshold": "low"}, "Silent means below (dB): give a number"),
        ({"silence_db_threshold": "nan"}, "Silent means below (dB)"),
        ({"scheduled_start_time": "soon"}, "Scheduled start: write a time"),
        ({"scheduled_start_time": "0001-01-01T00:00"}, "Scheduled start"),
        ({"maintenance_from": "2026-01-02T10:00"}, "Maintenance"),
        ({"loudness_min_lufs": "-5", "loudness_max_lufs": "-40"}, "loudness_min_lufs"),
        ({"quality": "worst"}, "Variant"),
        ({"metadata": "[1]"}, "Metadata"),
        ({"metadata": "{"}, "JSON"),
        ({"metadata": "[" * 50_000}, "JSON"),
    ],
)
async def test_what_cannot_be_monitored_is_said_and_what_was_typed_is_kept(
    visitor: Browser, wrong: dict[str, str], said: str
) -> None:
    visitor.http.cookies.set("lang", "en")
    typed = {"stream_url": url_of(1), "callback_url": CALLBACK, "bars_threshold_sec": "77"}
    refused = await visitor.send("/streams/new", **(typed | wrong))
    assert refused.status_code == 422
    alert = re.search(r'role="alert">([^<]+)<', refused.text)
    assert alert is not None
    assert said in html.unescape(alert[1])
    assert 'value="77"' in refused.text
    async with visitor.api.store.read() as reader:
        assert await queries.list_views(reader, None, 10, 0) == ([], 0)


async def test_a_stream_that_is_monitored_already_is_not_added_again(visitor: Browser) -> None:
    await add_monitor(visitor.api.system, 1)
    visitor.speak("en")
    sent = {"stream_url": url_of(1), "callback_url": CALLBACK}
    refused = await visitor.send("/streams/new", **sent)
    assert refused.status_code == 422
    assert "monitored already" in refused.text


async def test_a_monitor_is_stopped_once_somebody_has_said_so(visitor: Browser) -> None:
    monitor = await add_monitor(visitor.api.system)
    path = f"/streams/{monitor.id}"
    assert "data-ask=" in await visitor.see(path)
    without = await visitor.http.post(f"{path}/stop", data={})
    assert without.status_code == 422
    stopped = await visitor.send(f"{path}/stop")
    assert (stopped.status_code, stopped.headers["location"]) == (303, path)
    page = await visitor.see(path)
    assert "依頼により停止" in page
    assert "/stop" not in page


async def test_nothing_is_added_without_the_token_of_the_form(visitor: Browser) -> None:
    sent = {"stream_url": url_of(1), "callback_url": CALLBACK}
    assert (await visitor.http.post("/streams/new", data=sent)).status_code == 422


async def test_lanes_go_from_alert_to_recovery_and_from_start_to_end(
    visitor: Browser, clock: VirtualClock
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system, scheduled_start_time=clock.now())
    at = [clock.now() + MINUTE * n for n in range(10)]
    over = {"started_at": at[3], "recovered_at": at[4]}
    await keep(
        system,
        monitor,
        notice(EventType.DELAYED, at[1]),
        notice(EventType.STARTED, at[2]),
        notice(EventType.BLACKOUT, at[4], started_at=at[3]),
        notice(EventType.BLACKOUT_RECOVERED, at[5], **over),
        notice(EventType.SEGMENT_ERROR, at[6], started_at=at[5]),
        notice(EventType.SILENCE, at[8], started_at=at[7]),
    )
    async with system.store.read() as reader:
        view = await queries.find_view(reader, monitor.id)
        told, _ = await queries.list_events(reader, monitor.id, 50, 0)
    assert view is not None
    oldest_first = told[::-1]
    states = list_states(view, oldest_first, at[9])
    assert [(one.state, one.start, one.end) for one in states] == [
        ("waiting", at[0], at[1]),
        ("late", at[1], at[2]),
        ("live", at[2], at[9]),
    ]
    picture = list_senses(view, oldest_first, at[9], [Sense.BLACKOUT])
    error = Span(at[5], at[6], "error")
    assert picture == [Span(at[3], at[4], "blackout"), error]
    sound = list_senses(view, oldest_first, at[9], [Sense.SILENCE])
    assert sound == [error, Span(at[7], at[9], "silence")]
    page = await visitor.see(f"/streams/{monitor.id}", **{"Accept-Language": "en"})
    keys = set(re.findall(r'<span class="key k-lane s-(\w+)">', page))
    assert keys >= {"waiting", "late", "live", "blackout", "silence", "error"}
    assert fill(picture, states[-1:]) == [
        Span(at[2], at[3], "ok"),
        Span(at[4], at[5], "ok"),
        Span(at[6], at[9], "ok"),
    ]
    page = await visitor.see(f"/streams/{monitor.id}")
    assert 'class="lane s-blackout"' in page


async def test_a_payload_that_is_not_as_ours_are_is_shown_all_the_same(
    visitor: Browser, clock: VirtualClock
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system)
    facts = {"started_at": "yesterday", "recovered_at": 5, "snapshot": ["x"]}
    await keep(system, monitor, notice(EventType.BLACKOUT_RECOVERED, clock.now(), **facts))
    page = await visitor.see(f"/streams/{monitor.id}")
    assert escape(json.dumps("yesterday")) in page


async def test_loudness_is_a_line_that_joins_nothing_over_a_gap(
    visitor: Browser, clock: VirtualClock
) -> None:
    system = visitor.api.system
    monitor = await add_monitor(system, loudness_threshold_sec=30)
    path = f"/streams/{monitor.id}"
    assert "No loudness is on record" in await visitor.see(path, **ENGLISH)
    seconds = (0, 10, 20, 200, 210)
    now = clock.now()
    heard = [Heard(at=now + timedelta(seconds=one), lufs=-23.0 - one / 100) for one in seconds]
    await keep(system, monitor, heard=heard)
    page = await visitor.see(path, **ENGLISH)
    assert page.count('<path class="line c1"') == 2
    assert page.count('<path class="line level c3"') == 2
    assert "5 values of the last six hours" in page
