"""How what was seen is joined and drawn."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.media.findings import Findings, Loudness, Span, Track
from mimawari.watches.streams.probe.drawing import OK, draw, draw_axis, lay
from mimawari.watches.streams.probe.timeline import BLACK, SILENT, UNSEEN, Bad, Part, Probing, join


def spans(*pairs: tuple[float, float]) -> list[Span]:
    """Write spans briefly."""
    return [Span(start=start, end=end) for start, end in pairs]


def piece(start: float, *black: tuple[float, float], seconds: float = 2.0) -> Part:
    """Make up a piece that is black somewhere."""
    whole = Span(start=start, end=start + seconds)
    track = Track(whole=whole, bad=tuple(spans(*black)))
    sound = Track(whole=whole, bad=())
    return Part(found=Findings(picture=track, sound=sound, frame_seconds=0.04, bad_packets=0))


def test_what_goes_on_over_edges_is_one() -> None:
    assert join(BLACK, spans((1.0, 2.0), (2.01, 3.0), (4.0, 5.0))) == [
        Bad(what=BLACK, start=1.0, end=3.0),
        Bad(what=BLACK, start=4.0, end=5.0),
    ]


def test_what_is_too_short_is_not_told() -> None:
    assert join(BLACK, spans((1.0, 1.08))) == []
    assert join(SILENT, spans((1.0, 1.4))) == []
    assert len(join(SILENT, spans((1.0, 1.3), (1.32, 1.6)))) == 1


def test_pieces_are_put_behind_each_other_whatever_their_clocks_say() -> None:
    probing = Probing()
    for part in (piece(10.0, (11.0, 12.0)), piece(500.0, (500.0, 501.0)), piece(3.0)):
        probing.add(part)
    found = probing.finish()
    assert (found.seconds, found.pieces, found.frames_a_second) == (6.0, 3, 25.0)
    assert found.picture == (Bad(what=BLACK, start=1.0, end=3.0),)


def test_what_could_not_be_read_takes_its_time_and_is_not_seen() -> None:
    probing = Probing()
    lost = Part(found=None, seconds=4.0, why="broken")
    for part in (piece(10.0), lost, piece(16.0), lost):
        probing.add(part)
    found = probing.finish()
    assert (found.seconds, found.unseen_seconds, found.words) == (12.0, 8.0, ("broken",))
    assert [(one.start, one.end) for one in found.unseen] == [(2.0, 6.0), (8.0, 12.0)]


def test_something_short_is_drawn_though_its_cell_is_long() -> None:
    assert lay([Bad(what=BLACK, start=50.0, end=50.1)], 100.0, 10) == [OK] * 5 + [BLACK] + [OK] * 4
    assert lay([Bad(what=UNSEEN, start=0.0, end=100.0)], 100.0, 10) == [UNSEEN] * 10


@pytest.mark.parametrize(
    ("seconds", "width", "line"),
    [
        (30.0, 30, "0s        10s       20s"),
        (600.0, 40, "0s" + " " * 18 + "5:00"),
        (0.0, 20, "0s"),
    ],
)
def test_times_stand_under_their_cells(seconds: float, width: int, line: str) -> None:
    assert draw_axis(seconds, width) == line


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=5),
    st.floats(0.01, 5000),
    st.integers(1, 300),
)
def test_any_timeline_fits_the_screen(
    pairs: list[tuple[float, float]], seconds: float, columns: int
) -> None:
    probing = Probing()
    bad = [(min(pair), max(pair)) for pair in pairs if max(pair) <= seconds]
    probing.add(piece(0.0, *bad, seconds=seconds))
    lines = draw(probing.finish(), columns)
    assert lines[0].startswith("picture")
    assert lines[-1].strip().endswith(("ok", "black"))


def test_loudness_is_drawn_where_it_is() -> None:
    whole = Span(start=0.0, end=10.0)
    loud = Loudness(moments=(-70.0,) * 50 + (-10.0,) * 50, short_term=None)
    found = Findings(
        picture=None, sound=Track(whole=whole, bad=()), frame_seconds=0.0, bad_packets=0,
        loudness=loud,
    )  # fmt: skip
    probing = Probing()
    probing.add(Part(found=found))
    probed = probing.finish()
    (line,) = [one for one in draw(probed, 30) if one.startswith("loudness")]
    assert line == "loudness  " + " " * 10 + "█" * 10
    assert not any(one.startswith("picture") for one in draw(probed, 30))
    assert probed.frames_a_second is None
