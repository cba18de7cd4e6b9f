"""What goes on for too long is told once, and its end once; what is expected is not told."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.media.findings import Findings, Loudness, Track
from mimawari.media.timeline import Run
from mimawari.watches.streams import intervals
from mimawari.watches.streams.models import (
    Config,
    EventType,
    Notice,
    Reading,
    Sense,
    State,
    Stats,
    Window,
)
from mimawari.watches.streams.sync import tell_health
from tests.streams.making import findings, seen, track, whole_bad
from tests.streams.scene import EVENING, at

CLOCK = 10.0
"""What the clock of the first segment shows."""
LENGTH = 2.0
SHORT = Config(blackout_threshold_sec=6, silence_threshold_sec=6)


@dataclass
class Showing:
    """A stream that shows one segment after another."""

    config: Config = SHORT
    state: State = field(default_factory=lambda: State(anchor_at=EVENING))
    told: list[Notice] = field(default_factory=list)
    stats: list[Stats] = field(default_factory=list)
    number: int = 0

    def show(self, found: Findings, **given: Any) -> None:
        """Show a segment."""
        one = seen(self.number, found, **given)
        placed = intervals.place(self.state, one)
        sensed = intervals.sense(self.config, placed, one, at(1000 + self.number))
        self.state = sensed.state
        self.told += sensed.notices
        self.stats.append(sensed.stats)
        self.number += 1

    def span(self) -> tuple[float, float]:
        """Tell from when to when the next segment goes, by its own clock."""
        start = CLOCK + self.number * LENGTH
        return start, start + LENGTH

    def dark(self, count: int = 1, **given: Any) -> None:
        """Show segments that are black from end to end, with sound."""
        for _ in range(count):
            self.show(findings(whole_bad(*self.span()), track(*self.span()), **given))

    def good(self, count: int = 1, **given: Any) -> None:
        """Show segments that are as they should be."""
        for _ in range(count):
            self.show(findings(track(*self.span()), track(*self.span()), **given))

    def types(self) -> list[str]:
        """List what was told."""
        return [str(one.type) for one in self.told]


def test_6_3_black_over_many_segments_is_one_alert_and_one_recovery_with_exact_times() -> None:
    stream = Showing()
    start, end = stream.span()
    stream.show(findings(track(start, end, (start + 0.52, end)), track(start, end)))
    stream.dark(4)
    start, end = stream.span()
    stream.show(findings(track(start, end, (start, start + 1.2)), track(start, end)))
    alert, recovery = stream.told
    assert alert.type is EventType.BLACKOUT
    assert alert.data == {
        "duration_sec": 7.48,
        "started_at": at(0.52),
        "threshold_sec": 6,
        "segment_info": {"sequence": 3, "duration": LENGTH},
    }
    assert recovery.type is EventType.BLACKOUT_RECOVERED
    assert recovery.data == {
        "total_duration_sec": 10.68,
        "started_at": at(0.52),
        "recovered_at": at(11.2),
    }


def test_6_4_silence_over_many_segments_is_one_alert_and_one_recovery() -> None:
    stream = Showing()
    for _ in range(4):
        stream.show(findings(track(*stream.span()), whole_bad(*stream.span())))
    stream.good()
    assert stream.types() == ["alert.silence", "alert.silence_recovered"]
    assert stream.told[1].data["total_duration_sec"] == 8


@pytest.mark.parametrize(
    ("dark_for", "types"),
    [(5.9, []), (6.0, ["alert.blackout", "alert.blackout_recovered"])],
)
def test_a_run_is_told_at_its_threshold_and_never_under_it(
    dark_for: float, types: list[str]
) -> None:
    stream = Showing()
    stream.dark(2)
    start, end = stream.span()
    stream.show(findings(track(start, end, (start, start + dark_for - 4)), track(start, end)))
    stream.good()
    assert stream.types() == types


def test_a_run_that_is_told_counts_once() -> None:
    stream = Showing()
    stream.dark(9)
    stream.good()
    assert sum(one.blackouts for one in stream.stats) == 1
    assert sum(one.segments for one in stream.stats) == 10
    assert sum(one.silences for one in stream.stats) == 0


def test_picture_and_sound_are_told_apart() -> None:
    stream = Showing()
    for _ in range(3):
        stream.show(findings(whole_bad(*stream.span()), whole_bad(*stream.span())))
    assert sorted(stream.types()) == ["alert.blackout", "alert.silence"]
    stream.dark()
    assert stream.types()[-1] == "alert.silence_recovered"
    stream.good()
    assert stream.types()[-1] == "alert.blackout_recovered"


def test_8_6_health_names_what_was_told_and_is_well_again_after() -> None:
    stream = Showing(state=State(anchor_at=EVENING, reading=Reading(sequence=1)))
    assert tell_health(stream.state) == ("ok", "ok")
    stream.dark(3)
    assert tell_health(stream.state) == ("blackout", "ok")
    stream.good()
    assert tell_health(stream.state) == ("ok", "ok")


def test_a_gap_neither_lengthens_a_run_nor_ends_it() -> None:
    stream = Showing()
    stream.dark(2)
    stream.show(findings(whole_bad(*stream.span())), missed=100.0)
    assert stream.types() == ["alert.blackout"]
    assert stream.told[0].data["duration_sec"] == 6


def test_a_break_neither_lengthens_a_run_nor_ends_it() -> None:
    stream = Showing()
    stream.dark(2)
    stream.show(findings(whole_bad(5000.0, 5001.0)), is_break=True)
    assert stream.types() == []
    stream.show(findings(whole_bad(5001.0, 5002.0)))
    assert stream.types() == ["alert.blackout"]


def expecting(start: float, end: float) -> Config:
    """Expect something from one second of the programme to another."""
    window = Window(start=at(start), end=at(end))
    return Config(blackout_threshold_sec=6, silence_threshold_sec=6, maintenance=(window,))


def test_what_is_over_within_its_window_is_told_neither_way() -> None:
    stream = Showing(config=expecting(0, 100))
    stream.dark(5)
    stream.good(2)
    assert stream.types() == []
    assert sum(one.blackouts for one in stream.stats) == 0


def test_black_that_outlasts_its_window_is_told_with_its_true_start_and_recovers() -> None:
    stream = Showing(config=expecting(0, 11))
    stream.dark(5)
    assert stream.types() == []
    stream.dark(2)
    assert stream.types() == ["alert.blackout"]
    assert stream.told[0].data["started_at"] == EVENING
    assert stream.told[0].data["duration_sec"] == 12
    stream.good()
    assert stream.types() == ["alert.blackout", "alert.blackout_recovered"]
    assert stream.told[1].data["total_duration_sec"] == 14


def test_black_that_was_told_before_its_window_recovers_within_it() -> None:
    stream = Showing(config=expecting(7, 100))
    stream.dark(5)
    stream.good()
    assert stream.types() == ["alert.blackout", "alert.blackout_recovered"]


def test_after_a_window_the_next_run_is_told_again() -> None:
    stream = Showing(config=expecting(0, 12))
    stream.dark(4)
    stream.good(2)
    stream.dark(3)
    assert stream.types() == ["alert.blackout"]
    assert stream.told[0].data["started_at"] == at(12)


def test_no_sound_track_at_all_is_silence_with_its_reason() -> None:
    stream = Showing()
    for _ in range(3):
        stream.show(findings(track(*stream.span())))
    assert stream.types() == ["alert.silence"]
    assert stream.told[0].data["reason"] == "no_audio_track"


def test_no_sound_track_is_nothing_to_tell_where_none_is_expected() -> None:
    stream = Showing(config=Config(silence_threshold_sec=6, missing_audio_is_silence=False))
    for _ in range(5):
        stream.show(findings(track(*stream.span())))
    assert stream.types() == []


def test_nothing_beyond_black_and_silence_is_told_unless_asked_for() -> None:
    stream = Showing()
    for _ in range(10):
        bad = whole_bad(*stream.span())
        loud = Loudness(moments=(-3.0,) * 17, short_term=None)
        stream.good(frozen=bad, bars=bad, loudness=loud)
    assert stream.types() == []


def test_a_picture_that_stands_still_is_told_where_asked_for() -> None:
    stream = Showing(config=Config(freeze_threshold_sec=6))
    for _ in range(3):
        stream.good(frozen=whole_bad(*stream.span()))
    stream.good(frozen=track(*stream.span()))
    assert stream.types() == ["alert.freeze", "alert.freeze_recovered"]


def test_colour_bars_are_told_where_asked_for() -> None:
    stream = Showing(config=Config(bars_threshold_sec=6))
    for _ in range(3):
        stream.good(bars=whole_bad(*stream.span()))
    stream.good(bars=track(*stream.span()))
    assert stream.types() == ["alert.bars", "alert.bars_recovered"]


def test_black_is_not_told_as_standing_still_too() -> None:
    stream = Showing(config=Config(blackout_threshold_sec=6, freeze_threshold_sec=6))
    for _ in range(5):
        stream.dark(frozen=whole_bad(*stream.span()))
    assert stream.types() == ["alert.blackout"]


def level(lufs: float) -> Loudness:
    """Make up a segment as loud all over."""
    return Loudness(moments=(lufs,) * 17, short_term=None)


@pytest.mark.parametrize("lufs", [-45.0, -2.0])
def test_sound_too_low_and_too_loud_is_told_with_how_loud_it_is(lufs: float) -> None:
    stream = Showing(config=Config(loudness_threshold_sec=6))
    for _ in range(3):
        stream.good(loudness=level(lufs))
    stream.good(loudness=level(-20.0))
    assert stream.types() == ["alert.loudness", "alert.loudness_recovered"]
    assert stream.told[0].data["lufs"] == lufs


def test_sound_within_its_bounds_and_nothing_but_silence_are_no_matter_of_loudness() -> None:
    stream = Showing(config=Config(loudness_threshold_sec=6, silence_threshold_sec=600))
    for _ in range(4):
        stream.good(loudness=level(-20.0))
    for _ in range(4):
        stream.good(loudness=level(-70.0))
    assert stream.types() == []


def test_a_picture_comes_along_only_where_asked_for() -> None:
    assert not intervals.look_for(SHORT, State()).has_snapshot
    config = Config(blackout_threshold_sec=6, snapshot=True)
    assert intervals.look_for(config, State()).has_snapshot
    stream = Showing(config=config)
    stream.dark(3, snapshot=b"\xff\xd8")
    stream.good()
    alert, recovery = stream.told
    assert alert.data["snapshot"] == "data:image/jpeg;base64,/9g="
    assert "snapshot" not in recovery.data


def test_only_what_is_on_is_looked_for() -> None:
    heard = State(heard_seconds=0.0)
    look = intervals.look_for(Config(silence_db_threshold=-40.0, bars_threshold_sec=5), heard)
    assert (look.silence_db, look.has_bars) == (-40.0, True)
    assert [look.has_freeze, look.has_loudness, look.has_snapshot] == [False] * 3


def test_a_recovery_is_never_told_without_its_alert() -> None:
    run = Run(start=0.0, until=9.0, seconds=9.0, is_told=True)
    stream = Showing(state=State(anchor_at=EVENING, runs={Sense.BLACKOUT: run}))
    stream.good()
    assert stream.types() == []


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from((0.0, 0.0, 4.0))), max_size=40)
)
def test_whatever_is_shown_alerts_and_recoveries_take_turns(
    shown: list[tuple[bool, bool, float]],
) -> None:
    stream = Showing(config=expecting(20, 40))
    for is_black, is_silent, missed in shown:
        make_picture: Any = whole_bad if is_black else track
        make_sound: Any = whole_bad if is_silent else track
        picture: Track = make_picture(*stream.span())
        stream.show(findings(picture, make_sound(*stream.span())), missed=missed)
    for name in ("blackout", "silence"):
        mine = [one for one in stream.types() if name in one]
        assert mine[::2] == [f"alert.{name}"] * len(mine[::2])
        assert mine[1::2] == [f"alert.{name}_recovered"] * len(mine[1::2])
