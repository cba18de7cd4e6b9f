"""Cuts an MP4 file into a header and pieces, each of which can be decoded with it."""

import io
from collections.abc import Iterator
from dataclasses import dataclass

import av
from av.container import InputContainer, OutputContainer

from mimawari.media.segment import Unreadable

LEAST_MICROSECONDS = 2_000_000
_MOVFLAGS = "empty_moov+default_base_moof+frag_keyframe"
_HEADER, _FIRST = {b"ftyp", b"moov"}, b"moof"
_LONG = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A file in pieces."""

    header: bytes
    pieces: tuple[bytes, ...]


def cut_mp4(body: bytes, most_seconds: float) -> Cut:
    """Cut the beginning of a file; what is coded is copied as it is."""
    written = io.BytesIO()
    try:
        with (
            av.open(io.BytesIO(body), mode="r", format="mp4", metadata_errors="replace") as opened,
            av.open(written, "w", format="mp4", options=_options(opened)) as out,
        ):
            _copy(opened, out, most_seconds)
    except (av.FFmpegError, ValueError) as error:
        words = f"the file cannot be read: {error}"
        raise Unreadable(f"{words}; of fMP4 give the playlist, which names its header") from error
    return _split(written.getvalue())


def _options(opened: InputContainer) -> dict[str, str]:
    length = "min_frag_duration" if opened.streams.video else "frag_duration"
    return {"movflags": _MOVFLAGS, length: str(LEAST_MICROSECONDS)}


def _copy(opened: InputContainer, out: OutputContainer, most_seconds: float) -> None:
    wanted = [*opened.streams.video[:1], *opened.streams.audio[:1]]
    if not wanted:
        raise Unreadable("neither picture nor sound")
    copies = {one.index: out.add_stream_from_template(one) for one in wanted}
    first: float | None = None
    for packet in opened.demux(*wanted):
        if packet.dts is None:
            continue
        at = float(packet.dts * packet.time_base)
        first = at if first is None else first
        if at - first > most_seconds:
            return
        packet.stream = copies[packet.stream.index]
        out.mux(packet)


def _split(body: bytes) -> Cut:
    header, pieces = b"", []
    for kind, box in _boxes(body):
        if kind in _HEADER:
            header += box
        elif kind == _FIRST:
            pieces.append(box)
        elif pieces:
            pieces[-1] += box
    return Cut(header=header, pieces=tuple(pieces))


def _boxes(body: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 0
    while at + _LONG <= len(body):
        size = int.from_bytes(body[at : at + 4])
        if size < _LONG:
            return
        yield body[at + 4 : at + 8], body[at : at + size]
        at += size
