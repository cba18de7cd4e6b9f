"""Draws a small JPEG of a picture."""

from fractions import Fraction

import av
from av.video.codeccontext import VideoCodecContext

MOST_SIDE = 320
MOST_BYTES = 20_000
_QUALITIES = (5, 12, 31)
"""From fine to coarse, as the encoder has it."""


def make_jpeg(frame: av.VideoFrame) -> bytes | None:
    """Draw a picture at most 320 pixels wide and high; None where 20 KB are too few for it."""
    scale = min(1.0, MOST_SIDE / max(frame.width, frame.height))
    width, height = (max(2, round(side * scale / 2) * 2) for side in (frame.width, frame.height))
    small = frame.reformat(width, height, "yuvj420p")
    drawn = (_encode(small, quality) for quality in _QUALITIES)
    return next((jpeg for jpeg in drawn if len(jpeg) <= MOST_BYTES), None)


def _encode(frame: av.VideoFrame, quality: int) -> bytes:
    encoder = VideoCodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = frame.width, frame.height, "yuvj420p"
    encoder.time_base = Fraction(1, 25)
    encoder.qmin = encoder.qmax = quality
    frame.pts = None
    return b"".join(bytes(packet) for packet in [*encoder.encode(frame), *encoder.encode(None)])
