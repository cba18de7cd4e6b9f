"""The check of the books watch by the simulated API's truth: it passes, and it could fail."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from mimawari.app.judges.books import Evidence, Report, judge, plan_orders, watch_books
from mimawari.app.judges.virtual_run import START
from mimawari.sim.sites.google_books.observed import Found, Look, look_again
from tests.app.terminal import Terminal

SEED, DAYS = 11, 1.5
MANY, SOME, FEW, NONE = range(4)
"""The jobs in their order."""


@cache
def done() -> list[float]:
    return []


@cache
def evidence() -> Evidence:
    """Watch once for all tests."""
    return asyncio.run(watch_books(SEED, DAYS, done().append))


@cache
def looks() -> list[Look]:
    return look_again(SEED, evidence().requests)


def test_every_book_is_kept_once_and_no_page_skipped_whatever_goes_wrong() -> None:
    report = judge(evidence(), looks())
    assert report.ok, report
    assert (report.seed, report.days, report.jobs) == (SEED, DAYS, 4)
    assert report.most_calls_in_a_day == report.quota < report.calls < report.requests
    assert set(report.stops) == {"error", "exhausted", "max_per_run", "quota"}
    assert report.runs == sum(report.stops.values()) > 25
    assert report.volumes > report.books > 1000
    assert 60 < report.pages < report.calls
    assert report.failures >= 4
    assert report.resets >= 1
    assert report.examples == []
    assert {look.status for look in looks()} >= {200, 429, 500, 503}
    assert done() == sorted(done())
    assert done()[-1] == 1.0


def wrong(report: Report) -> dict[str, int]:
    """Tell what is not as it should be."""
    names = (
        *("missing", "extra", "skipped_pages", "repeated_pages", "over_quota_days"),
        *("cursor_differs", "wrong_exhausted", "wrong_stops", "overfetched"),
    )
    found = {name: getattr(report, name) for name in names if getattr(report, name)}
    assert report.ok == (not found)
    assert bool(report.examples) == (not report.ok)
    return found


def of_job(number: int, **changes: Any) -> dict[str, int]:
    """Judge with something else kept of a job."""
    watched = [*evidence().watched]
    watched[number] = replace(watched[number], **changes)
    return wrong(judge(replace(evidence(), watched=watched), looks()))


def told(given: Sequence[Look]) -> dict[str, int]:
    """Judge with other replies."""
    return wrong(judge(evidence(), given))


def page_of(number: int, *, place: int) -> int:
    """Find a job's page among all calls."""
    q = evidence().watched[number].q
    pages = [n for n, look in enumerate(looks()) if look.q == q and look.is_answered]
    return pages[place]


def test_a_page_that_was_left_out_is_noticed() -> None:
    given = [*looks()]
    left_out = given.pop(page_of(MANY, place=3))
    found = told(given)
    assert found["skipped_pages"] == 1
    # Nobody else was told of all its books.
    assert 0 < found["extra"] <= 2 * len(left_out.found)


def test_a_page_that_was_read_twice_is_noticed() -> None:
    given, place = [*looks()], page_of(MANY, place=3)
    given.insert(place, given[place])
    assert told(given)["repeated_pages"] == 1


def test_a_book_that_was_lost_is_noticed() -> None:
    lost, *others = evidence().books
    report = judge(replace(evidence(), books=others), looks())
    assert wrong(report) == {"missing": 1}
    [example] = report.examples
    assert (example.what, example.job, example.about) == ("missing", "all", lost)
    assert of_job(SOME, keys=evidence().watched[SOME].keys[1:]) == {"missing": 1}


def test_a_book_that_nobody_told_of_is_noticed() -> None:
    for more in ("9784000000000", evidence().books[0]):
        report = judge(replace(evidence(), books=[*evidence().books, more]), looks())
        assert wrong(report) == {"extra": 1}
    only_of_many = next(
        key for key in evidence().watched[MANY].keys if key not in evidence().watched[SOME].keys
    )
    assert of_job(SOME, keys=[*evidence().watched[SOME].keys, only_of_many]) == {"extra": 1}


def test_one_call_too_many_on_a_day_is_noticed() -> None:
    last = next(
        look for look in reversed(looks()) if look.at < START + timedelta(hours=23, minutes=59)
    )
    more = replace(
        last, at=START + timedelta(hours=23, minutes=59), q="?", is_answered=False, found=()
    )
    given = sorted([*looks(), more], key=lambda look: look.at)
    assert told(given) == {"over_quota_days": 1}


def test_a_wrong_cursor_is_noticed() -> None:
    for number in (MANY, NONE):
        start_index = evidence().watched[number].start_index
        assert of_job(number, start_index=start_index + 1) == {"cursor_differs": 1}


def test_a_job_that_is_exhausted_wrongly_is_noticed() -> None:
    for number in (MANY, SOME, FEW, NONE):
        is_exhausted = not evidence().watched[number].is_exhausted
        assert of_job(number, is_exhausted=is_exhausted) == {"wrong_exhausted": 1}


def test_a_rest_before_the_end_is_noticed_although_it_was_reset() -> None:
    place = page_of(MANY, place=3)
    at = looks()[place].at + timedelta(microseconds=1)
    found = of_job(MANY, resets=[at])
    assert found["wrong_exhausted"] >= 1


def test_a_job_that_is_asked_for_again_although_it_is_exhausted_is_noticed() -> None:
    assert evidence().watched[NONE].resets
    found = of_job(NONE, resets=[])
    assert found["wrong_exhausted"] >= 1


def test_a_run_that_tells_another_reason_is_noticed() -> None:
    runs = [*evidence().watched[NONE].runs]
    place = next(n for n, run in enumerate(runs) if run.reason == "exhausted")
    for reason in ("max_per_run", "none"):
        runs[place] = replace(runs[place], reason=reason)
        assert of_job(NONE, runs=runs) == {"wrong_stops": 1}


@pytest.mark.parametrize(("number", "more"), [(MANY, 41), (FEW, 8)])
def test_asking_for_more_than_is_wanted_is_noticed(number: int, more: int) -> None:
    given, place = [*looks()], page_of(number, place=0)
    given[place] = replace(given[place], most=more)
    assert told(given) == {"overfetched": 1}


def test_a_reply_that_failed_moves_no_cursor() -> None:
    given, place = [*looks()], page_of(FEW, place=0)
    failed = replace(given[place], is_answered=False, found=(), total=None)
    assert told([*given[:place], failed, *given[place:]]).keys() <= {"over_quota_days"}


def test_a_book_without_an_isbn_fills_no_place_of_a_run() -> None:
    assert any(not one.has_isbn for look in looks() for one in look.found)
    given, place = [*looks()], page_of(SOME, place=0)
    unnumbered = tuple(Found(key=one.key, has_isbn=False) for one in given[place].found)
    given[place] = replace(given[place], found=unnumbered)
    # The run was asked for few more, and then ended as if it had enough.
    assert told(given) == {"wrong_stops": 1}


def test_a_watch_that_was_never_tried_is_not_well() -> None:
    resting = [
        replace(one, start_index=0, is_exhausted=False, keys=[], runs=[], resets=[])
        for one in evidence().watched
    ]
    nothing = replace(evidence(), requests=[], watched=resting, books=[])
    report = judge(nothing, [])
    assert not report.ok
    assert (report.calls, report.pages, report.examples) == (0, 0, [])
    calm = [replace(look, status=500) if look.status == 503 else look for look in looks()]
    assert not judge(evidence(), calm).ok


def test_what_goes_wrong_follows_from_the_seed_and_comes_every_day() -> None:
    span = timedelta(days=2.5)
    planned = plan_orders(3, span)
    assert planned == plan_orders(3, span) != plan_orders(4, span)
    assert [when for when, _ in planned] == sorted(when for when, _ in planned)
    assert all(START <= when <= START + span for when, _ in planned)
    codes = [order.get("code") for _, order in planned]
    assert [codes.count(code) for code in (200, 429, 500, 503)] == [3, 3, 3, 3]
    assert all(order["part"] == "books" for _, order in planned)


def test_the_command_tells_programs_how_it_went(terminal: Terminal) -> None:
    said = terminal.run("sim", "check", "books", "--days", "1.5", "--seed", "3", "--json")
    found = said.json()
    assert found["ok"] is True, found
    assert (found["seed"], found["days"], found["jobs"]) == (3, 1.5, 4)
    assert (found["missing"], found["extra"], found["over_quota_days"]) == (0, 0, 0)
