"""What the streams watch decides: when to ask, when to try again, and which segments come next."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.media.playlist import Playlist
from mimawari.sites.youtube import Trouble
from mimawari.watches.streams import rules
from mimawari.watches.streams.models import Config, Reading
from mimawari.watches.streams.rules import Choice, FaultKind, choose
from tests.streams.making import TARGET, playlist, segment
from tests.streams.scene import EVENING, at

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("minutes", "seconds", "reason"),
    [
        (120, 600, "it begins later"),
        # Who polls seldom comes back in time to poll often.
        (15, 300, "it begins later"),
        (10, 60, "it begins soon"),
        (0.5, 30, "it begins soon"),
        (0, 30, "it should have begun"),
        (-300, 30, "it should have begun"),
    ],
)
def test_7_5_a_stream_is_asked_for_more_often_the_nearer_its_time_is(
    minutes: float, seconds: int, reason: str
) -> None:
    found = rules.next_poll(EVENING, EVENING + minutes * MINUTE)
    assert found == (at(seconds), reason)


def test_7_5_a_stream_of_which_no_time_is_known_is_asked_for_each_minute() -> None:
    assert rules.next_poll(EVENING, None) == (at(60), "nobody knows when it begins")


def test_7_5_what_whoever_asked_said_counts_before_what_the_site_says() -> None:
    assert rules.due_at(Config(scheduled_start_time=at(5)), at(9)) == at(5)
    assert rules.due_at(Config(), at(9)) == at(9)
    assert rules.due_at(Config(), None) is None


def test_7_3_a_stream_is_late_once_more_than_the_tolerance_has_passed() -> None:
    config = Config(scheduled_start_time=EVENING, start_delay_tolerance_sec=300)
    assert rules.delay_told_at(config) == at(301)
    assert rules.delay_told_at(Config()) is None


@pytest.mark.parametrize(
    ("what", "waits"),
    [
        ("manifest", [5, 10, 20, 40, 30, 30]),
        ("segment", [2, 4, 8, 16, 30, 30]),
        ("stale_playlist", [5, 10, 20, 40, 30, 30]),
    ],
)
def test_10_2_waits_double_and_10_3_the_fifth_failure_is_a_pause_of_30_s(
    what: FaultKind, waits: list[int]
) -> None:
    found = [rules.retry_after(what, count).total_seconds() for count in range(1, 7)]
    assert found == waits


def test_7_2_a_network_error_is_waited_for_exponentially_and_60_s_at_the_most() -> None:
    waits = [rules.unanswered_for(Trouble.NETWORK, count) for count in (1, 2, 3, 4, 5, 6, 1000)]
    assert [one.total_seconds() for one in waits] == [5, 10, 20, 40, 60, 60, 60]


@pytest.mark.parametrize("trouble", sorted({*Trouble} - {Trouble.NETWORK, Trouble.UPCOMING}))
def test_7_2_who_is_refused_comes_back_slowly(trouble: Trouble) -> None:
    waits = [rules.unanswered_for(trouble, count) for count in (1, 2, 3, 4, 5, 1000)]
    assert [one.total_seconds() for one in waits] == [60, 120, 240, 480, 600, 600]


def test_a_spell_of_failures_keeps_its_start_and_whether_it_was_told() -> None:
    first = rules.fail(None, "segment", "404", EVENING)
    told = replace(first, is_told=True)
    assert rules.fail(told, "manifest", "500", at(9)) == replace(
        told, what="manifest", count=2, words="500"
    )


def test_what_is_not_tried_again_lasts_but_does_not_count() -> None:
    first = rules.bear(None, "segment", "noise", EVENING)
    assert (first.since, first.count) == (EVENING, 0)
    failed = rules.fail(first, "segment", "404", at(9))
    assert rules.bear(failed, "segment", "noise", at(20)) == replace(failed, words="noise")


def test_10_3_after_five_segments_that_could_not_be_had_one_more_try_is_enough() -> None:
    fault = rules.fail(None, "segment", "404", EVENING)
    assert not rules.is_pausing(None)
    assert not rules.is_pausing(replace(fault, count=4))
    assert rules.is_pausing(replace(fault, count=5))
    assert not rules.is_pausing(replace(fault, count=5, what="manifest"))
    choice = rules.take_newest(choose(playlist(10, 25), Reading(sequence=7)), TARGET)
    assert [one.sequence for one in choice.segments] == [24]
    assert (choice.skipped, choice.missed) == (14, (2 + 14) * TARGET)


@pytest.mark.parametrize(
    ("said", "target", "taken"),
    [
        (2, 2, 2),
        (3.9, 2, 3.9),
        (5, 2, 4),
        (0, 2, 0),
        (10**9, 6, 12),
        (10**9, 10**9, 120),
        (9, 0, 9),
    ],
)
def test_6_5_a_segment_is_never_taken_for_much_longer_than_its_list_allows(
    said: float, target: float, taken: float
) -> None:
    assert rules.sane_seconds(segment(1, seconds=said), target) == taken


def test_6_1_whoever_begins_takes_the_newest_segment() -> None:
    assert [one.sequence for one in choose(playlist(7, 22), Reading()).segments] == [21]
    assert choose(playlist(7, 7), Reading()) == Choice()


def test_a_list_without_anything_new_gives_nothing() -> None:
    assert choose(playlist(7, 22), Reading(sequence=21)) == Choice()


def test_what_fell_off_the_list_between_two_looks_is_missed_for_its_length() -> None:
    choice = choose(playlist(30, 45), Reading(sequence=24))
    assert [one.sequence for one in choice.segments] == list(range(30, 45))
    assert (choice.missed, choice.skipped) == (5 * TARGET, 0)


def test_a_list_that_lags_behind_gives_nothing_twice_and_is_no_restart() -> None:
    reading = Reading(sequence=40)
    for end in (31, 33, 35, 41):
        choice = choose(playlist(end - 15, end), reading)
        assert not choice.segments
        assert not choice.is_restart
        reading = replace(reading, below=end - 1 if choice.is_behind else None)
    assert [one.sequence for one in choose(playlist(27, 42), reading).segments] == [41]


def test_a_list_that_counts_anew_is_taken_for_a_restart_once_it_grows() -> None:
    reading = Reading(sequence=1000)
    first = choose(playlist(0, 3), reading)
    assert first == Choice(is_behind=True)
    still = choose(playlist(0, 3), replace(reading, below=2))
    assert still == Choice(is_behind=True)
    grown = choose(playlist(0, 5), replace(reading, below=2))
    assert grown.is_restart
    assert [one.sequence for one in grown.segments] == [0, 1, 2, 3, 4]


def test_who_has_fallen_far_behind_goes_on_with_the_newest_and_says_how_much_is_left_out() -> None:
    choice = choose(playlist(100, 300), Reading(sequence=99))
    assert [one.sequence for one in choice.segments] == [299]
    assert (choice.skipped, choice.missed) == (199, 199 * TARGET)


def test_who_has_fallen_a_little_behind_catches_up_some_at_a_time() -> None:
    choice = choose(playlist(100, 200), Reading(sequence=99))
    assert [one.sequence for one in choice.segments] == list(range(100, 140))
    assert choice.has_more
    assert choice.skipped == 0


@st.composite
def looks(draw: st.DrawFn) -> list[Playlist]:
    """Draw what somebody sees who looks at a growing list, some copies of which lag behind."""
    window = draw(st.integers(1, 60))
    target = draw(st.sampled_from((1.0, 2.0, 6.0, 10.0)))
    end, seen = draw(st.integers(1, 1000)), []
    for more in draw(st.lists(st.integers(0, 90), min_size=2, max_size=12)):
        end += more
        shown = max(1, end - draw(st.integers(0, 4)))
        seen.append(playlist(max(0, shown - window), shown, target))
    return seen


@given(looks())
def test_no_segment_is_taken_twice_and_none_left_out_unsaid(lists: list[Playlist]) -> None:
    reading, taken, unseen = Reading(), [], 0.0
    for one in lists:
        while True:
            choice = choose(one, reading)
            assert not choice.is_restart
            taken += [each.sequence for each in choice.segments]
            unseen += choice.missed
            if choice.segments:
                reading = replace(reading, sequence=taken[-1])
            if not choice.has_more:
                break
    assert taken == sorted(set(taken))
    # Whatever lies between the first and the last was either looked into or said to be missed.
    left_out = taken[-1] - taken[0] + 1 - len(taken)
    assert unseen == pytest.approx(left_out * lists[0].target_seconds)


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 8))
def test_however_it_counts_anew_a_programme_goes_on(sequence: int, window: int, step: int) -> None:
    reading = Reading(sequence=sequence)
    for end in range(step, sequence + window + 2 * step + 1, step):
        choice = choose(playlist(max(0, end - window), end), reading)
        if choice.segments:
            assert choice.is_restart or choice.segments[0].sequence > sequence
            return
        reading = replace(reading, below=end - 1 if choice.is_behind else None)
    pytest.fail("nothing was ever taken again")


def test_5_4_a_list_is_looked_at_as_often_as_asked_for_and_before_half_of_it_is_gone() -> None:
    config = Config(check_interval_sec=10)
    assert rules.look_every(config, playlist(0, 15)) == timedelta(seconds=10)
    assert rules.look_every(config, playlist(0, 5)) == timedelta(seconds=5)
    assert rules.look_every(config, playlist(0, 0)) == timedelta(seconds=10)
    assert rules.look_every(config, playlist(0, 1, 0.0)) == timedelta(seconds=10)
    assert rules.look_every(config, playlist(0, 1, 0.5)) == timedelta(seconds=1)


def test_the_earliest_that_was_ever_seen_is_when_the_programme_began() -> None:
    first = rules.anchor(None, at(100), 20.0, TARGET)
    assert first == at(80)
    assert rules.anchor(first, at(111.5), 30.0, TARGET) == first
    assert rules.anchor(first, at(109), 30.0, TARGET) == at(79)


def test_a_programme_that_stood_still_goes_on_later() -> None:
    assert rules.anchor(at(80), at(160), 40.0, TARGET) == at(120)
