"""Playlists of simulated streams, as they are at a time of the clock."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mimawari.sim.chance import Chance
from mimawari.sim.sites.youtube.pictures import LADDER
from mimawari.sim.sites.youtube.programme import FPS, Programme

KEPT_SECONDS = 3600
"""Segments are there for so long after lists have stopped naming them."""
SUFFIXES = {"ts": "ts", "fmp4": "m4s"}
HEADER = "init.mp4"
CODECS = "avc1.42c00c,mp4a.40.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The segments that a list names: from which to before which, and what the first counts as."""

    first: int
    end: int
    sequence: int


def write_master(query: str, chance: Chance) -> str:
    """Write the list of lists, in an order that says nothing."""
    lines = ["#EXTM3U", "#EXT-X-VERSION:6", "#EXT-X-INDEPENDENT-SEGMENTS"]
    for rung in chance.sample(list(LADDER.values()), len(LADDER)):
        size = f"RESOLUTION={rung.width}x{rung.height},FRAME-RATE={FPS}"
        lines.append(f'#EXT-X-STREAM-INF:BANDWIDTH={rung.bandwidth},{size},CODECS="{CODECS}"')
        lines.append(f"{rung.height}p.m3u8?{query}")
    return "\n".join(lines) + "\n"


def find_listed(programme: Programme, on_clock: float) -> Listed:
    """Find what a list names at a time; after a restart only what came since."""
    end = programme.count_segments(on_clock)
    begin = max((one for one in programme.list_starts("restart") if one < end), default=0)
    first = max(begin, end - programme.window)
    return Listed(first=first, end=end, sequence=first - begin)


def find_segment(programme: Programme, on_clock: float, sequence: int) -> int | None:
    """Find the newest segment that goes by a sequence and is still there."""
    listed = find_listed(programme, on_clock)
    kept = listed.first - math.ceil(KEPT_SECONDS / programme.segment_seconds)
    end = listed.end
    for begin in (*reversed(programme.list_starts("restart")), 0):
        if max(begin, kept) <= begin + sequence < end:
            return begin + sequence
        end = min(end, begin)
    return None


def write_list(programme: Programme, height: int, query: str, on_clock: float) -> str:
    """Write the list of a height's segments."""
    listed = find_listed(programme, on_clock)
    breaks = programme.list_starts("break")
    lines = [
        "#EXTM3U",
        "#EXT-X-VERSION:8",
        f"#EXT-X-TARGETDURATION:{math.ceil(programme.segment_seconds)}",
        f"#EXT-X-MEDIA-SEQUENCE:{listed.sequence}",
        f"#EXT-X-DISCONTINUITY-SEQUENCE:{sum(one < listed.first for one in breaks)}",
    ]
    if programme.container == "fmp4":
        lines.append(f'#EXT-X-MAP:URI="{height}p/{HEADER}?{query}"')
    is_locked = False
    for number in range(listed.first, listed.end):
        was_locked, is_locked = is_locked, programme.is_upset(number, "encrypted")
        if is_locked != was_locked:
            lines.append(f"#EXT-X-KEY:{_key(query) if is_locked else 'METHOD=NONE'}")
        if number in breaks:
            lines.append("#EXT-X-DISCONTINUITY")
        lines += _describe(programme, number)
        sequence = listed.sequence + number - listed.first
        lines.append(f"{height}p/{sequence}.{SUFFIXES[programme.container]}?{query}")
    if programme.is_over(on_clock):
        lines.append("#EXT-X-ENDLIST")
    return "\n".join(lines) + "\n"


def _describe(programme: Programme, number: int) -> Iterator[str]:
    first, last = programme.span(number)
    at = programme.at(programme.clock_of(first / FPS))
    if programme.is_dated and at is not None:
        yield f"#EXT-X-PROGRAM-DATE-TIME:{at.isoformat(timespec='milliseconds')}"
    if programme.is_upset(number, "gap"):
        yield "#EXT-X-GAP"
    yield f"#EXTINF:{(last - first) / FPS:.3f},"


def _key(query: str) -> str:
    return f'METHOD=AES-128,URI="key.bin?{query}"'
