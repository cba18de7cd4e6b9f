"""How politely the rentals site was asked: each rule is noticed when it is broken."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from mimawari.sim.sites.yahoo_realestate.conduct import Manners, count_least, judge_manners
from tests.sim.test_rentals_looks import START, at_list, at_room, look

ROOM, OTHER = "0" * 44, "1" * 44
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
PACE = timedelta(minutes=12)


def paced(count: int, pace: timedelta = PACE) -> list[dict[str, Any]]:
    return [at_room(START + n * pace, f"{n:044x}") for n in range(count)]


def times(count: int, pace: timedelta = PACE) -> list[datetime]:
    return [START + n * pace for n in range(count)]


def block(at: datetime, path: str = f"/rent/detail/{ROOM}/") -> dict[str, Any]:
    return look(at, path, 500, do="blocked")


def judged(*requests: dict[str, Any]) -> Manners:
    return judge_manners(requests)


def test_one_each_twelve_minutes_is_five_an_hour() -> None:
    found = judge_manners([*paced(50), at_list(START + 10 * HOUR)])
    assert (found.requests, found.details, found.most_in_an_hour) == (51, 50, 5)
    assert found.ok


def test_the_busiest_hour_need_not_begin_with_the_clocks() -> None:
    requests = [*paced(5), at_room(START + HOUR - MINUTE, OTHER)]
    assert judge_manners(requests).most_in_an_hour == 6
    assert judge_manners([]).most_in_an_hour == 0


@pytest.mark.parametrize("status", [404, 410])
def test_to_ask_again_for_what_is_gone_is_noticed(status: int) -> None:
    gone = at_room(START, ROOM, status)
    assert judged(gone, at_room(START + HOUR, OTHER)).asked_again_after_404 == 0
    found = judged(gone, at_room(START + HOUR, ROOM, status), at_room(START + 2 * HOUR, ROOM))
    assert found.asked_again_after_404 == 2
    assert not found.ok


def test_a_list_that_is_404_may_be_asked_for_again() -> None:
    assert judged(at_list(START, status=404), at_list(START + HOUR)).ok


def test_to_ask_for_what_was_blocked_within_an_hour_is_noticed() -> None:
    soon = judged(block(START), at_room(START + HOUR - MINUTE, ROOM))
    assert (soon.blocked_url_within_an_hour, soon.ok) == (1, False)
    assert judged(block(START), at_room(START + HOUR, ROOM)).ok
    page = block(START, "/rent/search/03/13/13991/?page=2")
    assert judged(page, at_list(START + 6 * MINUTE, "03/13/13991", 3)).ok
    assert not judged(page, at_list(START + 6 * MINUTE, "03/13/13991", 2)).ok


def test_any_request_within_five_minutes_after_a_block_is_noticed() -> None:
    for request in (at_room, at_list):
        given = (OTHER,) if request is at_room else ()
        soon = judged(block(START), request(START + 4 * MINUTE, *given))
        assert (soon.requests_within_5_min_after_a_block, soon.ok) == (1, False)
        assert judged(block(START), request(START + 5 * MINUTE, *given)).ok
    assert judged(block(START), look(START, "/rent/")).requests_within_5_min_after_a_block == 1


def test_a_list_and_a_detail_in_the_moment_of_a_block_were_on_their_way_together() -> None:
    page = block(START, "/rent/search/03/13/13991/")
    assert judged(block(START), at_list(START)).ok
    assert judged(page, at_room(START, ROOM)).ok
    assert judged(page, block(START)).ok
    for requests in (
        [page, at_list(START)],
        [block(START), at_room(START, OTHER)],
        [page, block(START), at_list(START)],
        [page, at_room(START + timedelta(seconds=1), ROOM)],
        [page, look(START, "/robots.txt")],
    ):
        assert judged(*requests).requests_within_5_min_after_a_block == 1


def test_what_another_process_had_under_way_is_forgiven_and_nothing_else() -> None:
    second = timedelta(seconds=1)
    page = block(START, "/rent/")
    soon = look(START + 29 * second, "/rent/")
    other = {**soon, "user_agent": "another"}
    assert judge_manners([page, other], 30 * second).ok
    for requests, under_way_for in (([page, other], 29 * second), ([page, soon], 30 * second)):
        found = judge_manners(requests, under_way_for)
        assert found.blocked_url_within_an_hour == 1
        assert found.requests_within_5_min_after_a_block == 1


def test_an_error_that_is_no_block_asks_for_no_pause() -> None:
    error = at_room(START, ROOM, 500, do="status")
    assert judged(error, at_room(START + MINUTE, ROOM)).ok


def test_the_least_is_told_of_any_hour_within_a_span() -> None:
    span = (START, START + 5 * HOUR)
    assert count_least(times(26), [span]) == 5
    assert count_least(times(26, timedelta(minutes=15)), [span]) == 4
    assert count_least(times(26, timedelta(minutes=16)), [span]) == 3
    late = [START + HOUR / 2 + n * PACE for n in range(26)]
    assert count_least(late, [span]) == 3
    gap = [at for at in times(26) if not HOUR < at - START < 2 * HOUR]
    assert count_least(gap, [span]) == 1
    assert count_least([], [span]) == 0


def test_hours_that_reach_out_of_their_span_are_not_counted() -> None:
    stopped = times(11)
    assert count_least(stopped, [(START, START + 2 * HOUR)]) == 5
    assert count_least(stopped[:-1], [(START, START + 2 * HOUR)]) == 5
    assert count_least(stopped[:-1], [(START, START + 2 * HOUR + MINUTE)]) == 4
    assert count_least(stopped, [(START, START + 3 * HOUR + MINUTE)]) == 0
    assert count_least(stopped, [(START, START + HOUR - MINUTE)]) is None
    assert count_least(stopped, []) is None
