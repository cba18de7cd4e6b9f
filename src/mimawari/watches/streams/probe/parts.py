"""Looks into what is given once, be it one file or a list of segments, piece by piece."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from mimawari.errors import BadInput, Invalid, JobError
from mimawari.media.cut_mp4 import Cut, cut_mp4
from mimawari.media.cut_ts import TsCutter
from mimawari.media.findings import Findings, Look
from mimawari.media.playlist import Playlist, Segment
from mimawari.media.segment import Unreadable, analyse, find_container
from mimawari.text import one_line
from mimawari.watches.streams import rules
from mimawari.watches.streams.models import Quality
from mimawari.watches.streams.probe.timeline import Part

MOST_BYTES = 256 * 1024 * 1024
"""A file that has to be read whole may be so large."""
ENCRYPTED = "segments are encrypted, which is not supported"
GIVE = "give the address of a YouTube video, a playlist (.m3u8) or a segment, or a file"
GAP = "the playlist says that segments are missing"

Aside = Callable[..., Awaitable[Any]]
"""Runs a function in a process that may die of what it reads."""
See = Callable[[Segment], Awaitable[Findings]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be looked at, and for what."""

    look: Look
    seconds: float
    quality: Quality


async def look_into(
    chunks: Iterable[bytes], wanted: Wanted, aside: Aside
) -> AsyncGenerator[Part, None]:
    """Look into one file, whose bytes tell what it is; of a long one only its beginning is read."""
    left = iter(chunks)
    first = next(left, b"")
    container = _name_container(first)
    if container == "mpegts":
        for piece in _cut(first, left):
            yield await _see(aside, piece, b"", wanted.look)
        return
    whole = _whole(first, left)
    if container != "mp4":
        yield await _see(aside, whole, b"", wanted.look)
        return
    cut: Cut = await aside(cut_mp4, whole, wanted.seconds)
    for piece in cut.pieces:
        yield await _see(aside, piece, cut.header, wanted.look)


def _name_container(body: bytes) -> str:
    try:
        return find_container(body)
    except Unreadable as error:
        raise Unreadable(f"{error}; {GIVE}") from error


def _cut(first: bytes, left: Iterator[bytes]) -> Iterator[bytes]:
    cutter = TsCutter()
    yield from cutter.feed(first)
    for chunk in left:
        yield from cutter.feed(chunk)
    yield from cutter.finish()


def _whole(first: bytes, left: Iterator[bytes]) -> bytes:
    found = bytearray(first)
    for chunk in left:
        found += chunk
        if len(found) > MOST_BYTES:
            most = f"{MOST_BYTES // 1024**2} MiB"
            raise BadInput(f"files that are no .ts may have {most}; cut out a shorter part of it")
    return bytes(found)


async def _see(aside: Aside, body: bytes, header: bytes, look: Look) -> Part:
    try:
        return Part(found=await aside(analyse, body, header, look))
    except Invalid as error:
        return Part(found=None, why=one_line(str(error), most=200))


async def look_through(playlist: Playlist, wanted: Wanted, see: See) -> AsyncGenerator[Part, None]:
    """Look into the segments of a list in their order, whatever may be wrong with some."""
    for segment in choose(playlist, wanted.seconds):
        seconds = rules.sane_seconds(segment, playlist.target_seconds)
        if segment.has_gap or segment.is_encrypted:
            why = GAP if segment.has_gap else ENCRYPTED
            yield Part(found=None, seconds=seconds, is_break=segment.has_break, why=why)
            continue
        try:
            found = await see(segment)
        except (JobError, BadInput) as error:
            why = one_line(str(error), most=200)
            yield Part(found=None, seconds=seconds, is_break=segment.has_break, why=why)
        else:
            yield Part(found=found, is_break=segment.has_break)


def choose(playlist: Playlist, seconds: float) -> list[Segment]:
    """Choose as many segments as are wanted: the first of a list that is over, else the newest."""
    listed = playlist.segments if playlist.is_ended else playlist.segments[::-1]
    chosen: list[Segment] = []
    total = 0.0
    for segment in listed:
        if total >= seconds:
            break
        chosen.append(segment)
        total += rules.sane_seconds(segment, playlist.target_seconds)
    return chosen if playlist.is_ended else chosen[::-1]
