"""Segments of simulated streams: pictures and sounds of a pattern, put at their time."""

import io
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any

import av
from av.container import OutputContainer
from av.stream import Stream

from mimawari.sim.sites.youtube import pictures, sounds
from mimawari.sim.sites.youtube.pictures import LADDER, encode_pictures
from mimawari.sim.sites.youtube.programme import FPS, STARTS, Programme
from mimawari.sim.sites.youtube.sounds import RATE, SAMPLES, encode_sounds, find_packets

FIRST_SECONDS = 10
"""What the media clock shows when a programme begins."""
JUMP_SECONDS = 1000
"""How far it jumps with each break and restart."""
FORMATS = {"ts": "mpegts", "fmp4": "mp4"}
# Times are kept as they are given, and a header comes before any fragment.
OPTIONS = {
    "ts": {"mpegts_copyts": "1"},
    "fmp4": {
        "movflags": "cmaf+empty_moov+default_base_moof+frag_custom+frag_discont+skip_trailer",
        "use_editlist": "0",
    },
}


def make_segment(programme: Programme, number: int, height: int) -> bytes:
    """Make a segment that can be decoded alone and goes on from the one before."""
    written = io.BytesIO()
    with _open(written, programme.container) as out:
        streams = _add_streams(out, height, has_sound=programme.has_sound(number))
        out.start_encoding()
        packets = [*_pictures(programme, number, height, streams[0])]
        for sound in streams[1:]:
            packets += _sounds(programme, number, sound)
        for packet in sorted(packets, key=_time):
            out.mux_one(packet)
    body = written.getvalue()
    return body if programme.container == "ts" else _without_header(body)


@lru_cache
def make_header(height: int) -> bytes:
    """Make what segments of fMP4 have in common."""
    written = io.BytesIO()
    with _open(written, "fmp4") as out:
        _add_streams(out, height, has_sound=True)
        out.start_encoding()
    return written.getvalue()


def media_clock(programme: Programme, number: int) -> int:
    """Return by how many seconds a segment's clock is ahead of the programme."""
    jumps = sum(start <= number for start in programme.list_starts(*STARTS))
    return FIRST_SECONDS + JUMP_SECONDS * jumps


def _open(written: io.BytesIO, container: str) -> OutputContainer:
    return av.open(written, "w", format=FORMATS[container], options=OPTIONS[container])


def _add_streams(out: OutputContainer, height: int, *, has_sound: bool) -> list[Stream]:
    picture = out.add_stream("libx264", rate=FPS)
    pictures.set_up(picture.codec_context, LADDER[height])
    if not has_sound:
        return [picture]
    sound = out.add_stream("aac", rate=RATE)
    sounds.set_up(sound.codec_context)
    return [picture, sound]


def _pictures(
    programme: Programme, number: int, height: int, stream: Stream
) -> "Iterator[av.Packet[Any]]":
    encoded = encode_pictures(height, pictures.list_runs(programme, number))
    first = programme.span(number)[0] + media_clock(programme, number) * FPS
    for place, body in enumerate(encoded):
        packet = av.Packet(body)
        packet.stream, packet.time_base = stream, Fraction(1, FPS)
        packet.pts = packet.dts = first + place
        packet.duration, packet.is_keyframe = 1, place == 0
        yield packet


def _sounds(programme: Programme, number: int, stream: Stream) -> "Iterator[av.Packet[Any]]":
    encoded = encode_sounds(sounds.list_runs(programme, number))
    first = find_packets(programme, number)[0] * SAMPLES + media_clock(programme, number) * RATE
    for place, body in enumerate(encoded):
        packet = av.Packet(body)
        packet.stream, packet.time_base = stream, Fraction(1, RATE)
        packet.pts = packet.dts = first + place * SAMPLES
        packet.duration, packet.is_keyframe = SAMPLES, True
        yield packet


def _time(packet: "av.Packet[Any]") -> float:
    return float((packet.dts or 0) * packet.time_base)


def _without_header(body: bytes) -> bytes:
    """Cut off the boxes before the first fragment."""
    place = 0
    while body[place + 4 : place + 8] != b"moof":
        place += int.from_bytes(body[place : place + 4], "big")
    return body[place:]
