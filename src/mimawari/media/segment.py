"""Looks and listens into one segment: where the picture is black, and where there is silence.

Picture and sound are decoded once, whatever is looked for. What a segment says may end the
process that decodes it, so it is called through `net.reader`.
"""

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import av
from av.container import InputContainer
from av.stream import Stream

from mimawari.errors import Invalid
from mimawari.media.ear import Ear
from mimawari.media.eye import Eye
from mimawari.media.findings import Findings, Look, Loudness, Span, Track, combine

__all__ = [
    "LEAST_BLACK_SECONDS",
    "LEAST_SILENCE_SECONDS",
    "Findings",
    "Look",
    "Loudness",
    "Span",
    "Track",
    "Unreadable",
    "analyse",
    "combine",
    "find_container",
]

LEAST_BLACK_SECONDS = 0.1
LEAST_SILENCE_SECONDS = 0.5
USUAL_LOOK = Look()
MOST_BAD_SHARE = 0.5
"""With more bad packets than this, nothing can be said of a segment."""

_SYNC, _PACKET = 0x47, 188
_ADTS = 0xF0
_BOXES = {b"ftyp", b"styp", b"moof", b"sidx", b"moov", b"emsg", b"prft"}
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")


class Unreadable(Invalid):
    """A segment that cannot be looked into: no media at all, or too broken."""


def find_container(body: bytes) -> str:
    """Name the container that bytes are in, by themselves and not by what they are called."""
    if body[:1] == bytes([_SYNC]) and body[_PACKET : _PACKET + 1] in {b"", bytes([_SYNC])}:
        return "mpegts"
    if body[4:8] in _BOXES:
        return "mp4"
    if body[:3] == b"ID3" or (body[:1] == b"\xff" and body[1:2] and body[1] & 0xF6 == _ADTS):
        return "aac"
    if _MARKUP.match(body):
        raise Unreadable("a web page in place of a segment")
    raise Unreadable("no media" if body else "an empty segment")


def analyse(body: bytes, header: bytes = b"", look: Look = USUAL_LOOK) -> Findings:
    """Look and listen into a segment; `header` is what fMP4 keeps apart from its segments."""
    whole = header + body
    container = find_container(whole)
    try:
        with av.open(
            io.BytesIO(whole), mode="r", format=container, metadata_errors="replace"
        ) as opened:
            return _look(opened, look)
    except (av.FFmpegError, ValueError) as error:
        raise Unreadable(f"the segment cannot be decoded: {error}") from error


def _look(opened: InputContainer, look: Look) -> Findings:
    pictures, sounds = opened.streams.video[:1], opened.streams.audio[:1]
    if not pictures and not sounds:
        raise Unreadable("neither picture nor sound")
    eye = Eye(pictures[0], look) if pictures else None
    ear = Ear(look) if sounds else None
    good = bad = 0
    for packet in _packets(opened, [*pictures, *sounds]):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            bad += 1
            continue
        good += bool(frames)
        for frame in frames:
            if isinstance(frame, av.VideoFrame):
                if eye is not None:
                    eye.take(frame)
            elif isinstance(frame, av.AudioFrame) and ear is not None:
                ear.take(frame)
    if not good or bad > MOST_BAD_SHARE * (good + bad):
        raise Unreadable(f"{bad} of {good + bad} packets cannot be decoded")
    return _tell(eye, ear, bad)


def _tell(eye: Eye | None, ear: Ear | None, bad_packets: int) -> Findings:
    black, frozen, bars = eye.finish() if eye else (None, None, None)
    return Findings(
        picture=black,
        sound=ear.taking.finish() if ear else None,
        frame_seconds=eye.frame_seconds if eye else 0.0,
        bad_packets=bad_packets,
        frozen=frozen,
        bars=bars,
        loudness=ear.finish() if ear else None,
        snapshot=eye.show() if eye else None,
    )


def _packets(opened: InputContainer, streams: Sequence[Stream]) -> "Iterator[av.Packet[Any]]":
    """Yield packets up to where the container breaks off."""
    packets = opened.demux(*streams)
    while True:
        try:
            yield next(packets)
        except (StopIteration, av.FFmpegError):
            return
