"""What every published segment of a simulated stream shows of black-outs and silences."""

from datetime import UTC, datetime

import pytest

from mimawari.sim.sites.youtube.observed import BLACK, Incident, list_incidents, silent_kinds
from mimawari.sim.sites.youtube.programme import Programme, Shot, Upset

START_AT = datetime(2026, 6, 1, tzinfo=UTC)
SILENT = silent_kinds(-50.0)


def programme(*parts: Shot | Upset) -> Programme:
    return Programme(
        video_id="stage",
        title="stage",
        starts_at=START_AT,
        seconds=60.0,
        shots=tuple(one for one in parts if isinstance(one, Shot)),
        upsets=tuple(one for one in parts if isinstance(one, Upset)),
    )


def black(start: float, end: float) -> Shot:
    return Shot(what="black", start=start, end=end)


def test_runs_go_over_the_edges_of_segments_and_are_exact_to_the_frame() -> None:
    found = list_incidents(programme(black(10.04, 20.04), black(20.08, 29.0)), BLACK, 10)
    assert found == [
        Incident(first=251, seen=250, enough=501, end=501),
        Incident(first=502, seen=223, enough=None, end=725),
    ]


def test_a_gap_neither_lengthens_a_run_nor_ends_it() -> None:
    hidden = Upset(what="gap", start=14.0, end=18.0)
    [incident] = list_incidents(programme(black(10.0, 24.0), hidden), BLACK, 8)
    assert incident == Incident(first=250, seen=250, enough=550, end=600)
    assert list_incidents(programme(black(14.0, 18.0), hidden), BLACK, 1) == []


@pytest.mark.parametrize("what", ["missing", "garbage", "encrypted"])
def test_a_segment_that_cannot_be_looked_into_is_a_gap(what: str) -> None:
    hidden = Upset(what=what, start=14.0, end=15.0)
    [incident] = list_incidents(programme(black(10.0, 20.0), hidden), BLACK, 9)
    assert (incident.seen, incident.enough) == (200, None)


def test_a_stall_or_a_break_hides_nothing() -> None:
    upsets = (Upset(what="stall", start=12.0, end=40.0), Upset(what="break", start=14.0, end=14.0))
    [incident] = list_incidents(programme(black(10.0, 20.0), *upsets), BLACK, 10)
    assert (incident.seen, incident.enough) == (250, 500)


def test_a_run_that_lasts_to_the_end_has_none() -> None:
    [incident] = list_incidents(programme(black(50.0, 70.0)), BLACK, 5)
    assert incident == Incident(first=1250, seen=250, enough=1375, end=None)


def test_what_is_dark_or_stands_still_is_not_black() -> None:
    shots = [Shot(what=what, start=10.0, end=20.0) for what in ("near_black", "bars", "freeze")]
    assert [list_incidents(programme(shot), BLACK, 1) for shot in shots] == [[], [], []]


def test_where_there_is_no_sound_track_it_is_silent() -> None:
    [incident] = list_incidents(programme(Shot(what="mute_track", start=11.0, end=13.0)), SILENT, 4)
    assert incident == Incident(first=250, seen=100, enough=350, end=350)


@pytest.mark.parametrize(
    ("silence_db", "names"),
    [
        (-65.0, {"silence"}),
        (-50.0, {"silence", "noise"}),
        (-30.0, {"silence", "noise", "quiet", "hum"}),
    ],
)
def test_what_is_silent_depends_on_the_threshold(silence_db: float, names: set[str]) -> None:
    assert silent_kinds(silence_db) == names
