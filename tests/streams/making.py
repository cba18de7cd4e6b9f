"""Playlists, segments and what they show, made up."""

from typing import Any

from mimawari.media.findings import Findings, Span, Track
from mimawari.media.playlist import Piece, Playlist, Segment
from mimawari.watches.streams.intervals import Seen

TARGET = 2.0
FRAME = 0.04


def segment(sequence: int, **given: Any) -> Segment:
    """Make up a segment."""
    values: dict[str, Any] = {
        "seconds": TARGET,
        "header": None,
        "has_gap": False,
        "has_break": False,
        "is_encrypted": False,
        "at": None,
        **given,
    }
    piece = Piece(url=f"https://origin.test/{sequence}.ts")
    return Segment(sequence=sequence, piece=piece, **values)


def playlist(first: int, end: int, target: float = TARGET, *, is_ended: bool = False) -> Playlist:
    """Make up a list of the segments from one to before another."""
    listed = tuple(segment(number, seconds=target) for number in range(first, end))
    return Playlist(segments=listed, target_seconds=target, is_ended=is_ended)


def track(start: float, end: float, *bad: tuple[float, float]) -> Track:
    """Make up a track, and where it is bad."""
    return Track(whole=Span(start=start, end=end), bad=tuple(Span(start=a, end=b) for a, b in bad))


def whole_bad(start: float, end: float) -> Track:
    """Make up a track that is bad from end to end."""
    return track(start, end, (start, end))


def findings(picture: Track | None, sound: Track | None = None, **given: Any) -> Findings:
    """Make up what a segment shows."""
    values = {"frame_seconds": FRAME, "bad_packets": 0, **given}
    return Findings(picture=picture, sound=sound, **values)


def seen(sequence: int, found: Findings, *, missed: float = 0.0, is_break: bool = False) -> Seen:
    """Make up a segment that was looked into."""
    return Seen(segment=segment(sequence), found=found, missed=missed, is_break=is_break)
