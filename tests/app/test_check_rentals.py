"""The check of the rentals watch by the simulated site's truth: it passes, and it could fail."""

import asyncio
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from functools import cache

import pytest

from mimawari.app.judges.rentals import (
    Evidence,
    Moment,
    clear_spans,
    compare,
    judge,
    plan_orders,
    watch_rentals,
)
from mimawari.app.judges.virtual_run import START
from mimawari.sim.sites.yahoo_realestate.observed import Change
from tests.app.terminal import Terminal

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
SEED, DAYS = 11, 0.5


@cache
def done() -> list[float]:
    return []


@cache
def evidence() -> Evidence:
    """Watch once for all tests: half a day, in which everything goes wrong once."""
    return asyncio.run(watch_rentals(SEED, DAYS, done().append))


def test_every_change_is_told_and_every_rule_kept_whatever_goes_wrong() -> None:
    report = judge(evidence())
    assert report.ok, report
    assert (report.seed, report.days) == (SEED, DAYS)
    assert (report.missing, report.extra) == (0, 0)
    assert 4 <= (report.least_in_a_full_hour or 0) <= report.most_in_an_hour == 5
    assert report.properties > 400
    assert report.changes > report.properties
    assert 30 < report.details < report.requests
    assert report.blocks >= 2
    statuses = {seen["status"] for seen in evidence().requests}
    assert statuses >= {200, 404, 500}
    assert done() == sorted(done())
    assert done()[-1] == 1.0


def spoiled(changes: list[Change]) -> Evidence:
    return replace(evidence(), changes=changes)


def test_a_change_that_was_lost_is_noticed() -> None:
    changes = list(evidence().changes)
    lost = changes.pop(len(changes) // 2)
    report = judge(spoiled(changes))
    assert (report.ok, report.missing, report.extra) == (False, 1, 0)
    assert asdict(report.missing_examples[0]).items() <= asdict(lost).items()


def test_a_change_that_nobody_could_have_seen_is_noticed() -> None:
    changes = list(evidence().changes)
    made_up = replace(changes[-1], kind="rent", before="1", after="2")
    report = judge(spoiled([*changes, made_up]))
    assert (report.ok, report.missing, report.extra) == (False, 0, 1)
    assert asdict(report.extra_examples[0]).items() <= asdict(made_up).items()


def test_a_wrong_amount_is_noticed_on_both_sides() -> None:
    changes = list(evidence().changes)
    place = next(n for n, one in enumerate(changes) if one.kind == "rent")
    changes[place] = replace(changes[place], after="1")
    report = judge(spoiled(changes))
    assert (report.ok, report.missing, report.extra) == (False, 1, 1)
    assert len(judge(spoiled([])).missing_examples) == 5


def test_a_request_too_many_is_noticed() -> None:
    requests = list(evidence().requests)
    place = next(n for n, seen in enumerate(requests) if seen["status"] == 404)
    requests.insert(place + 1, {**requests[place], "n": 0})
    report = judge(replace(evidence(), requests=requests))
    assert not report.ok
    assert report.asked_again_after_404 == 1
    assert report.most_in_an_hour == 6


def test_a_watch_that_slept_is_noticed() -> None:
    end = START + timedelta(days=DAYS)
    late = [seen for seen in evidence().requests if seen["at"] < (end - 5 * HOUR).isoformat()]
    still = [Moment(at=START + n * 5 * MINUTE, is_clear=True) for n in range(12 * 12 + 1)]
    report = judge(replace(evidence(), requests=late, moments=still))
    assert (report.ok, report.least_in_a_full_hour) == (False, 0)
    nothing = judge(replace(evidence(), moments=[]))
    assert (nothing.ok, nothing.least_in_a_full_hour) == (False, None)


def moments(marks: str) -> list[Moment]:
    """Look every five minutes; a `-` is a time at which something stood in the way."""
    return [Moment(at=at(5 * n), is_clear=mark != "-") for n, mark in enumerate(marks)]


def at(minutes: int) -> datetime:
    return START + minutes * MINUTE


@pytest.mark.parametrize(
    ("marks", "blocks", "spans"),
    [
        ("++++", [], [(0, 15)]),
        ("-++-+++", [], [(5, 10), (20, 30)]),
        ("+++++++", [12], [(0, 12), (17, 30)]),
        ("+++++++", [12, 14], [(0, 12), (19, 30)]),
        ("-++++++", [3], [(8, 30)]),
        ("+++++++", [28], [(0, 28)]),
        ("----", [7], []),
        ("-+-", [], []),
        ("", [], []),
    ],
)
def test_a_full_hour_leaves_out_all_that_stood_in_the_way(
    marks: str, blocks: list[int], spans: list[tuple[int, int]]
) -> None:
    found = clear_spans(moments(marks), [at(minute) for minute in blocks])
    assert found == [(at(start), at(end)) for start, end in spans]


def change(kind: str, before: str, after: str, minutes: int = 0) -> Change:
    return Change(property_id="a", at=at(minutes), kind=kind, before=before, after=after)


def test_changes_are_compared_in_the_order_in_which_they_were_seen() -> None:
    up, down, fee = change("rent", "1", "2"), change("rent", "2", "1", 1), change("fee", "0", "5")
    assert compare([up, fee, down], [fee, up, down]) == ([], [])
    later = [replace(one, at=one.at + HOUR) for one in (up, fee, down)]
    assert compare(later, [up, fee, down]) == ([], [])
    turned = [replace(down, at=at(0)), replace(up, at=at(1))]
    missing, extra = compare(turned, [up, down])
    assert len(missing) == len(extra) == 1
    missing, extra = compare([replace(up, property_id="b")], [up])
    assert ([one.property_id for one in missing], [one.property_id for one in extra]) == (
        ["a"],
        ["b"],
    )


def test_what_goes_wrong_follows_from_the_seed_and_comes_every_day() -> None:
    span = timedelta(days=2.5)
    planned = plan_orders(3, span)
    assert planned == plan_orders(3, span) != plan_orders(4, span)
    assert [when for when, _ in planned] == sorted(when for when, _ in planned)
    assert all(START <= when <= START + span for when, _ in planned)
    kinds = [order["do"] for _, order in planned]
    assert (kinds.count("blocked"), kinds.count("status"), kinds.count("gone")) == (6, 6, 3)
    assert all(order["part"] == "rentals" for _, order in planned)


def test_the_command_tells_programs_how_it_went(terminal: Terminal) -> None:
    said = terminal.run("sim", "check", "rentals", "--days", "0.5", "--seed", "3", "--json")
    found = said.json()
    assert found["ok"] is True, found
    assert (found["seed"], found["days"], found["missing"], found["extra"]) == (3, 0.5, 0, 0)
