"""What simulated streams show and sound like: every shot as it is named, and exact at its edges."""

import io
import math
from array import array
from dataclasses import replace
from itertools import pairwise

import av
import pytest

from mimawari.media.segment import Findings, Look, Span, Track, analyse
from mimawari.sim.sites.youtube.programme import Programme, Shot
from mimawari.sim.sites.youtube.segments import make_segment
from tests.sim.viewing import PROGRAMME

FRAME = 0.04
PACKET = 1024 / 48_000


def showing(*shots: Shot) -> Programme:
    return replace(PROGRAMME, shots=shots)


def look(programme: Programme, number: int = 0) -> Findings:
    return analyse(make_segment(programme, number, 144))


def track(found: Track | None) -> Track:
    assert found is not None
    return found


def on(what: str) -> Programme:
    """Make a programme that shows one thing all the time."""
    return showing(Shot(what=what, start=-1))


def frames(programme: Programme, plane: int = 0) -> list[bytes]:
    """Decode one plane of each picture of the first segment."""
    with av.open(io.BytesIO(make_segment(programme, 0, 144)), mode="r") as opened:
        return [bytes(frame.planes[plane]) for frame in opened.decode(video=0)]


def loudness(programme: Programme) -> tuple[float, float]:
    """Return the mean and the highest level of the first segment, in dB below full scale."""
    with av.open(io.BytesIO(make_segment(programme, 0, 144)), mode="r") as opened:
        parts = [bytes(one.planes[0])[: one.samples * 4] for one in opened.decode(audio=0)]
    # The first packet lacks the one before it.
    heard = array("f", b"".join(parts[1:]))
    mean = math.sqrt(sum(one * one for one in heard) / len(heard))
    return decibel(mean), decibel(max(map(abs, heard)))


def decibel(level: float) -> float:
    return 20 * math.log10(max(level, 1e-9))


def differ(one: bytes, other: bytes) -> float:
    return sum(abs(a - b) for a, b in zip(one, other, strict=True)) / len(one)


def is_all(found: Track | None) -> bool:
    """Say whether all of a track is bad."""
    return track(found).bad == (track(found).whole,)


def test_the_usual_is_neither_black_nor_silent_and_moves() -> None:
    found = look(PROGRAMME)
    assert track(found.picture).bad == track(found.sound).bad == ()
    seen = frames(PROGRAMME)
    assert len(seen) == 50
    assert all(differ(a, b) > 1 for a, b in pairwise(seen))
    assert loudness(PROGRAMME)[0] == pytest.approx(-20, abs=1)


def test_black_is_black() -> None:
    assert is_all(look(on("black")).picture)


def test_near_black_is_dark_and_not_black() -> None:
    assert track(look(on("near_black")).picture).bad == ()
    assert all(50 < max(seen) < 80 for seen in frames(on("near_black")))


def test_bars_stand_still_in_seven_colours() -> None:
    assert track(look(on("bars")).picture).bad == ()
    seen = frames(on("bars"))
    assert differ(seen[1], seen[-1]) < 1
    row = seen[0][:256]
    steps = [row[round((bar + 0.5) * 256 / 7)] for bar in range(7)]
    assert steps == sorted(steps, reverse=True)
    assert steps == pytest.approx([180, 162, 131, 112, 84, 65, 35], abs=4)
    assert max(frames(on("bars"), plane=1)[0]) > 200


def test_a_freeze_holds_the_picture_it_began_with() -> None:
    seen = frames(showing(Shot(what="freeze", start=0.4, end=1.6)))
    usual = frames(PROGRAMME)
    assert all(differ(usual[10], held) < 3 for held in seen[10:40])
    assert differ(seen[39], seen[40]) > 3
    assert all(differ(usual[n], seen[n]) < 3 for n in (9, 40, 49))


def test_silence_is_nothing_at_all() -> None:
    assert is_all(look(on("silence")).sound)
    assert loudness(on("silence"))[1] < -150


def test_a_noise_floor_is_silent_by_50_db_and_not_by_70() -> None:
    assert is_all(look(on("noise")).sound)
    assert loudness(on("noise"))[0] == pytest.approx(-60, abs=4)
    body = make_segment(on("noise"), 0, 144)
    assert track(analyse(body, look=Look(silence_db=-70)).sound).bad == ()


@pytest.mark.parametrize(("what", "level"), [("hum", -40), ("quiet", -45)])
def test_a_hum_and_a_quiet_sound_are_not_silent(what: str, level: float) -> None:
    assert track(look(on(what)).sound).bad == ()
    assert loudness(on(what))[0] == pytest.approx(level, abs=1.5)


def test_a_loud_sound_is_near_to_full_scale() -> None:
    assert loudness(on("loud"))[1] == pytest.approx(0, abs=1)


def test_segments_that_a_mute_track_touches_have_no_sound() -> None:
    programme = showing(Shot(what="mute_track", start=3.0, end=4.5))
    found = [look(programme, number) for number in range(4)]
    assert [one.sound is None for one in found] == [False, True, True, False]
    assert all(track(one.picture).whole.seconds == pytest.approx(2) for one in found)


@pytest.mark.parametrize(
    ("start", "end"), [(0.48, 1.12), (0.0, 0.2), (1.8, 2.0), (0.5, 1.51), (0.123, 1.987)]
)
def test_edges_within_a_segment_are_exact_to_the_frame(start: float, end: float) -> None:
    programme = showing(
        Shot(what="black", start=4 + start, end=4 + end),
        Shot(what="silence", start=4 + start, end=4 + end),
    )
    found = look(programme, 2)
    [black] = track(found.picture).bad
    assert (black.start - 14, black.end - 14) == pytest.approx((start, end), abs=FRAME / 2 + 1e-4)
    [silent] = track(found.sound).bad
    assert (silent.start - 14, silent.end - 14) == pytest.approx((start, end), abs=PACKET)


def test_a_run_over_many_segments_is_whole() -> None:
    programme = showing(
        Shot(what="black", start=1.2, end=9.0), Shot(what="silence", start=1.2, end=9.0)
    )
    found = [look(programme, number) for number in range(5)]
    for kind, exact in (("picture", 1e-4), ("sound", PACKET)):
        spans: list[Span] = [span for one in found for span in getattr(one, kind).bad]
        assert len(spans) == 5
        assert sum(span.seconds for span in spans) == pytest.approx(7.8, abs=exact)


def test_of_shots_that_overlap_the_last_one_named_is_on() -> None:
    programme = showing(
        Shot(what="black", start=0),
        Shot(what="bars", start=0.4, end=1.0),
        Shot(what="hum", start=0),
    )
    spans = track(look(programme).picture).bad
    assert [(one.start, one.end) for one in spans] == [
        pytest.approx((10.0, 10.4)),
        pytest.approx((11.0, 12.0)),
    ]


def test_a_shot_may_come_again_and_again() -> None:
    programme = showing(Shot(what="black", start=3, end=5, every=100))
    lengths = [
        sum(span.seconds for span in track(look(programme, number).picture).bad)
        for number in (0, 1, 2, 3, 50, 51, 52, 53, 1_000_001, 1_000_002)
    ]
    assert lengths == pytest.approx([0, 1, 1, 0, 0, 1, 1, 0, 1, 1], abs=1e-4)


def test_a_segment_is_the_same_however_often_it_is_made() -> None:
    programme = showing(Shot(what="black", start=3.4, end=5.2))
    assert make_segment(programme, 1, 144) == make_segment(programme, 1, 144)
