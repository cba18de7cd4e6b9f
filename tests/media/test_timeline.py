"""Runs are joined over the edges of segments, and what nobody saw proves nothing."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.media.findings import Findings, Span, Track
from mimawari.media.timeline import Change, Place, Run, follow, put_in_place

FRAME = 0.04
THRESHOLD = 30.0


def track(start: float, end: float, *bad: tuple[float, float]) -> Track:
    """Make up a stretch of a track."""
    return Track(whole=Span(start=start, end=end), bad=tuple(Span(start=a, end=b) for a, b in bad))


def findings(picture: Track) -> Findings:
    """Make up what a segment shows."""
    return Findings(picture=picture, sound=None, frame_seconds=FRAME, bad_packets=0)


def go_over(*tracks: Track, run: Run | None = None) -> tuple[Run | None, list[Change]]:
    """Follow a run over some stretches."""
    told = []
    for one in tracks:
        run, changes = follow(run, one, THRESHOLD, FRAME / 2)
        told += changes
    return run, told


def test_a_run_over_many_segments_is_told_once_and_is_over_once() -> None:
    segments = [track(10 * n, 10 * n + 10, (10 * n, 10 * n + 10)) for n in range(4)]
    run, told = go_over(*segments, track(40, 50, (40, 44)), track(50, 60))
    assert run is None
    assert told == [
        Change(is_over=False, start=0, at=30, seconds=30),
        Change(is_over=True, start=0, at=44, seconds=44),
    ]


def test_a_run_that_is_too_short_is_never_told() -> None:
    assert go_over(track(0, 20, (1, 20)), track(20, 40, (20, 30.9)))[1] == []
    _, told = go_over(track(0, 20, (1, 20)), track(20, 40, (20, 31)))
    assert [one.is_over for one in told] == [False, True]


def test_one_good_picture_ends_a_run() -> None:
    _, told = go_over(track(0, 50, (0, 29), (29.04, 50)))
    assert told == []


def test_less_than_a_picture_between_two_segments_ends_none() -> None:
    _, told = go_over(track(0, 20, (0, 20)), track(20.03, 40, (20.04, 40)))
    assert [one.is_over for one in told] == [False]


def test_a_gap_neither_lengthens_a_run_nor_ends_it() -> None:
    run, told = go_over(track(0, 20, (0, 20)), track(60, 69, (60, 69)))
    assert told == []
    assert run == Run(start=0, until=69, seconds=29)
    run, told = go_over(track(69, 80, (69, 80)), run=run)
    assert told == [Change(is_over=False, start=0, at=70, seconds=40)]


def test_after_a_gap_good_is_good() -> None:
    run, told = go_over(track(0, 40, (0, 40)), track(60, 70))
    assert run is None
    assert told[-1] == Change(is_over=True, start=0, at=60, seconds=60)


def test_segments_whose_clock_goes_on_keep_their_place_to_the_frame() -> None:
    placed = put_in_place(
        Place(), findings(track(90_000.0, 90_004.0)), missed_seconds=0, is_break=False
    )
    assert placed.place == Place(end=4.0, offset=-90_000.0)
    later = put_in_place(
        placed.place, findings(track(90_004.02, 90_008.02)), missed_seconds=0, is_break=False
    )
    assert later.picture is not None
    assert later.picture.whole.start == pytest.approx(4.02)


@pytest.mark.parametrize(
    ("start", "is_break"), [(12.0, False), (0.0, False), (90_005.0, True), (95_443.7, False)]
)
def test_a_clock_that_jumps_does_not_move_the_programme(start: float, *, is_break: bool) -> None:
    place = Place(end=4.0, offset=-90_000.0)
    placed = put_in_place(
        place, findings(track(start, start + 4)), missed_seconds=0, is_break=is_break
    )
    assert placed.picture is not None
    assert placed.picture.whole.start == pytest.approx(4.0)
    assert placed.place.end == pytest.approx(8.0)


def test_what_was_missed_takes_its_time() -> None:
    place = Place(end=4.0, offset=-90_000.0)
    placed = put_in_place(
        place, findings(track(90_016.0, 90_020.0)), missed_seconds=12, is_break=False
    )
    assert placed.picture is not None
    assert placed.picture.whole == Span(start=16.0, end=20.0)


def test_a_segment_without_tracks_changes_nothing() -> None:
    nothing = Findings(picture=None, sound=None, frame_seconds=0, bad_packets=3)
    place = Place(end=4.0, offset=1.0)
    assert put_in_place(place, nothing, missed_seconds=0, is_break=False).place == place


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=12),
    st.lists(st.integers(1, 9), min_size=1, max_size=6),
    st.booleans(),
    st.lists(st.sampled_from((0, 1000, 77_777)), min_size=1, max_size=5),
)
def test_however_a_programme_is_cut_the_same_is_told(
    lengths: list[int], cuts: list[int], is_bad_first: bool, clocks: list[int]
) -> None:
    """Compare with a reader who has the whole programme before him, in seconds."""
    seconds = [
        (number % 2 == 0) == is_bad_first for number, length in enumerate(lengths)
        for _ in range(length)
    ]  # fmt: skip
    edges = [0]
    while edges[-1] < len(seconds):
        edges.append(min(len(seconds), edges[-1] + cuts[len(edges) % len(cuts)]))
    place, run, told = Place(), None, []
    for number, (a, b) in enumerate(pairwise(edges)):
        clock = clocks[number % len(clocks)]
        bad = [(clock + at, clock + at + 1) for at in range(a, b) if seconds[at]]
        shown = findings(track(clock + a, clock + b, *bad))
        placed = put_in_place(place, shown, missed_seconds=0, is_break=False)
        place = placed.place
        assert placed.picture is not None
        run, changes = follow(run, placed.picture, THRESHOLD, FRAME / 2)
        told += [(one.is_over, round(one.start), round(one.at)) for one in changes]
    wanted, start = [], 0
    for number, length in enumerate(lengths):
        if ((number % 2 == 0) == is_bad_first) and length >= THRESHOLD:
            wanted.append((False, start, start + 30))
            if start + length < len(seconds):
                wanted.append((True, start, start + length))
        start += length
    assert told == wanted
