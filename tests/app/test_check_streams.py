"""The check of the streams watch by simulated streams: it passes, and it could fail."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from mimawari.app.judges.streams import watch_streams
from mimawari.app.judges.streams_plan import INCIDENTS, Script, draw_scripts
from mimawari.app.judges.streams_verdict import Evidence, Report, Told, judge, list_labels
from mimawari.app.judges.virtual_run import START
from mimawari.sim.sites.youtube.programme import FPS
from mimawari.watches.streams.models import EventType, Sense
from tests.app.terminal import Terminal

SEED, STREAMS = 118, 3
ALERT, OVER = EventType.BLACKOUT, EventType.BLACKOUT_RECOVERED
COUNTS = (
    *("missing", "unrecovered", "false", "doubled", "wrong_start", "wrong_duration", "late"),
    *("unverified", "disordered", "wrong_others"),
)


@cache
def done() -> list[float]:
    return []


@cache
def evidence() -> Evidence:
    """Watch once for all tests."""
    scripts = draw_scripts(SEED, STREAMS, START)
    return asyncio.run(watch_streams(SEED, scripts, done().append))


def test_every_incident_as_long_as_its_threshold_is_told_once_and_its_end_and_no_other() -> None:
    report = judge(evidence())
    assert report.ok, report
    assert (report.seed, report.streams) == (SEED, STREAMS)
    assert report.incidents >= INCIDENTS * STREAMS
    assert report.incidents > report.expected == report.alerted == report.recovered > 12
    assert report.requests > report.segments > 200
    assert len(report.upsets) > 4
    assert 0 < report.most_delay_share <= 1.0
    assert report.held < report.expected + report.recovered
    assert report.examples == []
    assert done() == sorted(done())
    assert done()[-1] == 1.0


def wrong(told: Sequence[Told]) -> dict[str, int]:
    """Judge something else that was told, and name what is not as it should be."""
    return named(judge(replace(evidence(), told=told)))


def named(report: Report) -> dict[str, int]:
    found = {name: getattr(report, name) for name in COUNTS if getattr(report, name)}
    assert report.ok == (not found)
    assert bool(report.examples) == (not report.ok)
    return found


def find(kind: str, is_fit: Callable[[Told], bool] = lambda _: True) -> int:
    """Find the first of a kind among all that was told."""
    return next(n for n, one in enumerate(evidence().told) if one.type == kind and is_fit(one))


def changed(place: int, **changes: Any) -> list[Told]:
    """Tell one of all otherwise."""
    told = [*evidence().told]
    told[place] = replace(told[place], **changes)
    return told


def saying(place: int, **more: Any) -> Mapping[str, Any]:
    """Let one of all say something else."""
    body = evidence().told[place].body
    return {**body, "data": {**body["data"], **more}}


def moved(place: int, name: str, seconds: float) -> str:
    at = evidence().told[place].moment(name) + timedelta(seconds=seconds)
    return at.isoformat(timespec="milliseconds")


def without(place: int) -> list[Told]:
    told = [*evidence().told]
    del told[place]
    return told


def is_dated(one: Told) -> bool:
    scripts = {script.programme.video_id: script for script in evidence().scripts}
    return scripts[one.stream].programme.is_dated


def test_an_alert_that_was_lost_is_noticed() -> None:
    assert wrong(without(find(ALERT))) == {"missing": 1, "false": 1}


def test_an_end_that_was_lost_is_noticed() -> None:
    assert wrong(without(find(OVER))) == {"unrecovered": 1}
    assert wrong(without(find(EventType.SILENCE_RECOVERED))) == {"unrecovered": 1}


def test_a_webhook_that_came_twice_is_noticed() -> None:
    place = find(ALERT)
    told = [*evidence().told]
    again = told[place]
    assert wrong([*told[:place], again, *told[place:]]) == {"doubled": 1, "unverified": 2}
    other = replace(again, event_id="another")
    assert wrong([*told[:place], other, *told[place:]]) == {"doubled": 1}


def test_a_webhook_that_was_not_signed_is_noticed() -> None:
    assert wrong(changed(find(ALERT), is_verified=False)) == {"unverified": 1}


def test_an_alert_of_nothing_is_noticed() -> None:
    place = find(ALERT)
    told = [*evidence().told]
    body = saying(place, started_at=moved(place, "started_at", -3600))
    made_up = replace(told[place], event_id="another", body=body)
    assert wrong([*told[:place], made_up, *told[place:]]) == {"false": 1}


@pytest.mark.parametrize("seconds", [-0.1, 0.1])
def test_a_start_that_is_off_is_noticed(seconds: float) -> None:
    place = find(ALERT, is_dated)
    body = saying(place, started_at=moved(place, "started_at", seconds))
    assert wrong(changed(place, body=body)) == {"wrong_start": 1}


def test_a_start_without_dates_may_be_off_by_a_segment_and_no_more() -> None:
    place = find(ALERT, lambda one: not is_dated(one))
    body = saying(place, started_at=moved(place, "started_at", 5.2))
    assert wrong(changed(place, body=body)) == {"wrong_start": 1}


@pytest.mark.parametrize("seconds", [-0.1, 0.1])
def test_a_duration_that_is_off_is_noticed(seconds: float) -> None:
    place = find(OVER)
    total = evidence().told[place].body["data"]["total_duration_sec"] + seconds
    at = moved(place, "recovered_at", seconds)
    body = saying(place, total_duration_sec=total, recovered_at=at)
    assert wrong(changed(place, body=body)) == {"wrong_duration": 1}
    assert wrong(changed(place, body=saying(place, recovered_at=at))) == {"wrong_duration": 1}


def test_an_alert_that_knows_less_than_its_threshold_is_noticed() -> None:
    place = find(ALERT)
    assert wrong(changed(place, body=saying(place, duration_sec=1.0))) == {"wrong_duration": 1}


@pytest.mark.parametrize("kind", [ALERT, OVER, EventType.SILENCE])
def test_what_is_told_late_is_noticed(kind: EventType) -> None:
    place = find(kind)
    late_at = evidence().told[place].at + timedelta(minutes=2)
    assert wrong(changed(place, at=late_at)) == {"late": 1}


def test_another_order_is_noticed() -> None:
    told = [*evidence().told]
    place = find(EventType.ENDED)
    first = next(n for n, one in enumerate(told) if one.stream == told[place].stream)
    told[first], told[place] = told[place], told[first]
    assert wrong(told).keys() == {"disordered", "wrong_others"}


def test_an_error_that_was_none_is_noticed() -> None:
    place = find(EventType.ENDED)
    told = [*evidence().told]
    body = {**saying(place, reason="segment"), "event_type": EventType.SEGMENT_ERROR}
    error = replace(told[place], event_id="another", body=body)
    assert wrong([*told[:place], error, *told[place:]]) == {"wrong_others": 1}


@pytest.mark.parametrize("more", [-2, 2])
def test_a_watch_with_another_threshold_is_noticed(more: int) -> None:
    scripts = [
        replace(
            script,
            config=replace(
                script.config,
                blackout_threshold_sec=script.config.blackout_threshold_sec + more,
            ),
        )
        for script in evidence().scripts
    ]
    found = named(judge(replace(evidence(), scripts=scripts)))
    assert found["missing" if more < 0 else "false"] > 1


def test_a_watch_that_told_nothing_is_not_well() -> None:
    report = judge(replace(evidence(), told=[]))
    assert named(report)["missing"] == report.expected
    assert not judge(replace(evidence(), told=[], scripts=[])).ok


def list_lengths(script: Script) -> list[int]:
    """Tell by how many frames each incident is longer than its threshold."""
    return [
        label.incident.seen - (script.config.threshold(label.sense) or 0) * FPS
        for label in list_labels(script)
    ]


@pytest.mark.parametrize("seed", range(1, 7))
def test_programmes_hold_incidents_of_every_length_and_all_that_goes_wrong(seed: int) -> None:
    scripts = draw_scripts(seed, 20, START)
    assert scripts == draw_scripts(seed, 20, START)
    labels = [label for script in scripts for label in list_labels(script)]
    assert len(labels) >= 200
    assert min(len(list(list_labels(script))) for script in scripts) >= INCIDENTS
    assert {label.sense for label in labels} == {Sense.BLACKOUT, Sense.SILENCE}
    assert all(label.incident.end is not None for label in labels)
    lengths = Counter(length for script in scripts for length in list_lengths(script))
    assert min(lengths[length] for length in (-3, -1, 0, 1)) >= 5
    assert max(label.seconds for label in labels) > 60
    due = [label.due for label in labels if label.due is not None]
    assert 100 < len(due) < len(labels) - 40
    assert sum(one.counts_from is not None for one in due) > 70
    upsets = {one.what for script in scripts for one in script.programme.upsets}
    assert upsets >= {"gap", "missing", "garbage", "break", "stall", "stale", "forbidden"}
    assert {script.programme.segment_seconds for script in scripts} == {1.0, 2.0, 4.0, 5.0}
    assert {script.programme.container for script in scripts} == {"ts", "fmp4"}


def test_the_command_tells_programs_how_it_went(terminal: Terminal) -> None:
    found = terminal.run("sim", "check", "streams", "--streams", "1", "--json").json()
    assert found["ok"] is True, found
    assert (found["seed"], found["streams"]) == (1, 1)
    assert found["incidents"] >= INCIDENTS
