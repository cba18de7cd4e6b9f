"""Reads playlists of HLS: which variants there are, and which segments."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

import m3u8

from mimawari.errors import Invalid
from mimawari.text import one_line

MOST_BYTES = 4 * 1024 * 1024
MOST_SEGMENTS = 100_000
MOST_SECONDS = 10.0**9
MOST_NUMBER = 2**53 - 1
"""The largest sequence, size or offset: what is larger no database and no page can hold."""
# What stands before the first line of a list, if anything, is a remark.
_FIRST = re.compile(r"\ufeff?(?:[ \t]*(?:#[^\n]*|\\)?\r?\n){0,20}?[ \t]*#EXTM3U\b")
# Only tags that are used are given to the library, which stumbles over odd ones of the others.
_USED = re.compile(
    r"#(?:EXTM3U\b|EXT-X-(?:TARGETDURATION|MEDIA-SEQUENCE|DISCONTINUITY|KEY|MAP|BYTERANGE|GAP"
    r"|ENDLIST|PROGRAM-DATE-TIME|SKIP)\b)"
)
_LENGTH = re.compile(r"#EXTINF:\s*(-?[0-9.]+(?:[eE][+-]?[0-9]+)?)")
_VARIANT = "#EXT-X-STREAM-INF:"
_BANDWIDTH = re.compile(r"[:,\s]BANDWIDTH=([0-9.]+)")
_SIZE = re.compile(r"[:,\s]RESOLUTION=([0-9]+)x([0-9]+)")
# Lists without a URL, or with one of another kind, lead nowhere.
_SCHEMES = {"http", "https"}


class NotPlaylist(Invalid):
    """A reply that is no playlist, or one that nobody can read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A part of a file, in bytes."""

    start: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Where some bytes are: a file, or a part of one."""

    url: str
    range: Range | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment as a playlist tells of it."""

    sequence: int
    piece: Piece
    seconds: float
    header: Piece | None
    """What fMP4 keeps apart from its segments."""
    has_gap: bool
    """The list itself says that there is nothing there."""
    has_break: bool
    """What comes does not go on from what was before."""
    is_encrypted: bool
    at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Playlist:
    """The segments that there are now."""

    segments: tuple[Segment, ...]
    target_seconds: float
    is_ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One of several lists of the same programme."""

    url: str
    bandwidth: int
    height: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """A list of lists."""

    variants: tuple[Variant, ...]


def parse_playlist(body: bytes, url: str) -> Playlist | Master:
    """Read a playlist that came from an address; what is none is refused and never empty."""
    if len(body) > MOST_BYTES:
        raise NotPlaylist(f"the playlist is larger than {MOST_BYTES} bytes")
    text = body.decode("utf-8", "replace")
    if not _FIRST.match(text):
        begin = one_line(text[:60], most=40)
        raise NotPlaylist(f"no playlist: it begins with {begin!r}" if begin else "an empty reply")
    try:
        found = m3u8.loads("\n".join(_plain_lines(text)))
        # A list that names both is one of lists: its own segments would be of no variant.
        return _make_master(found, url) if found.playlists else _make_playlist(found, url)
    except NotPlaylist:
        raise
    except Exception as error:
        # The library raises whatever its reading stumbles over.
        said = one_line(str(error), most=100)
        raise NotPlaylist(f"the playlist cannot be read: {type(error).__name__} {said}") from error


def _plain_lines(text: str) -> Iterator[str]:
    """Yield the lines that matter, each in its plainest form."""
    for line in map(str.strip, text.lstrip("\ufeff").splitlines()):
        if line.startswith(_VARIANT):
            bandwidth, size = _BANDWIDTH.search(line), _SIZE.search(line)
            width = f",RESOLUTION={size[1]}x{size[2]}" if size else ""
            yield f"{_VARIANT}BANDWIDTH={_whole(bandwidth[1]) if bandwidth else 0}{width}"
        elif line.startswith("#EXTINF"):
            length = _LENGTH.match(line)
            if length is None:
                raise NotPlaylist(f"a segment without a length: {one_line(line, most=40)!r}")
            yield f"#EXTINF:{_seconds(length[1])},"
        elif line and (not line.startswith("#") or _USED.match(line)):
            yield line


def choose_variant(master: Master, quality: str) -> Variant:
    """Choose by quality: `best`, `lowest`, or the one nearest to a height like `360p`."""
    ordered = sorted(master.variants, key=lambda one: one.bandwidth)
    if not ordered:
        raise NotPlaylist("the playlist names no variant")
    if quality == "best":
        return ordered[-1]
    if quality == "lowest":
        return ordered[0]
    wanted = int(quality.removesuffix("p"))
    return min(ordered, key=lambda one: (abs((one.height or 0) - wanted), one.bandwidth))


def _make_master(found: Any, url: str) -> Master:
    variants = []
    for one in found.playlists:
        target = _join(url, one.uri)
        told = one.stream_info
        size = told.resolution
        # A list that names itself as a variant would be read for ever.
        if target is not None and target != url:
            height = size[1] if size else None
            variant = Variant(url=target, bandwidth=_whole(told.bandwidth), height=height)
            variants.append(variant)
    if not variants:
        raise NotPlaylist("the playlist names no variant but itself")
    return Master(variants=tuple(variants))


def _make_playlist(found: Any, url: str) -> Playlist:
    if len(found.segments) > MOST_SEGMENTS:
        raise NotPlaylist(f"the playlist has more than {MOST_SEGMENTS} segments")
    skipped = _whole(found.skip.skipped_segments) if found.skip else 0
    first = _whole(found.media_sequence) + skipped
    segments: list[Segment] = []
    ends: dict[str, int] = {}
    for number, one in enumerate(found.segments):
        segment = _make_segment(one, first + number, url, ends)
        if segment is not None:
            segments.append(segment)
    return Playlist(
        segments=tuple(segments),
        target_seconds=_seconds(found.target_duration),
        is_ended=bool(found.is_endlist),
    )


def _make_segment(one: Any, sequence: int, url: str, ends: dict[str, int]) -> Segment | None:
    """Make a segment; `ends` are where the last part of each file ended."""
    piece = _make_piece(one.uri, one.byterange, url, ends)
    if piece is None:
        return None
    header = one.init_section
    at = one.current_program_date_time
    method = one.key.method if one.key else None
    return Segment(
        sequence=sequence,
        piece=piece,
        seconds=_seconds(one.duration),
        header=_make_piece(header.uri, header.byterange, url, {}) if header else None,
        has_gap=bool(one.gap_tag),
        has_break=bool(one.discontinuity),
        is_encrypted=method not in {None, "NONE"},
        at=at.astimezone(UTC) if at and at.tzinfo else None,
    )


def _make_piece(uri: str | None, told: str | None, url: str, ends: dict[str, int]) -> Piece | None:
    target = _join(url, uri)
    if target is None:
        return None
    if not told:
        return Piece(url=target)
    size, _, offset = told.partition("@")
    length = _whole(size)
    start = _whole(offset) if offset else ends.get(target, 0)
    ends[target] = start + length
    return Piece(url=target, range=Range(start=start, size=length))


def _join(url: str, uri: str | None) -> str | None:
    if not uri:
        return None
    target = urljoin(url, uri.strip())
    return target if urlsplit(target).scheme in _SCHEMES else None


def _seconds(value: Any) -> float:
    seconds = float(value or 0.0)
    return min(max(seconds, 0.0), MOST_SECONDS) if math.isfinite(seconds) else 0.0


def _whole(value: Any) -> int:
    """Read a whole number, which some write with a fraction; refuse what nothing can hold."""
    digits, _, _ = str(value or 0).partition(".")
    number = int(digits)
    if abs(number) > MOST_NUMBER:
        raise NotPlaylist(f"a number of the playlist is larger than {MOST_NUMBER}")
    return number
