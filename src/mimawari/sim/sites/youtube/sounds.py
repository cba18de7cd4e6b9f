"""The sounds of simulated streams, encoded once for each pattern of them."""

import math
from array import array
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import av

from mimawari.sim.chance import chance_of
from mimawari.sim.sites.youtube.pictures import KEPT, Run
from mimawari.sim.sites.youtube.programme import FPS, SOUNDS, Programme, cut

RATE = 48_000
SAMPLES = 1024
"""So many samples are in one packet."""
ROUND = 9600
"""After so many samples every sound goes on as before."""
BIT_RATE = 32_000
_A_FRAME = RATE // FPS
_SAMPLE = array("f").itemsize
# How often a wave swings in a round, and how far.
_WAVES = {
    "": (96, 0.141),
    "silence": (1, 0.0),
    "hum": (10, 0.0141),
    "quiet": (200, 0.00795),
    "loud": (96, 0.97),
}
# Its mean is some 60 dB below full scale, and its peaks are not above 50.
_NOISE = 0.0017


def find_packets(programme: Programme, number: int) -> tuple[int, int]:
    """Return the first packet that begins in a segment, and the first that does not any more."""
    first, last = programme.span(number)
    return -(-first * _A_FRAME // SAMPLES), -(-last * _A_FRAME // SAMPLES)


def list_runs(programme: Programme, number: int) -> tuple[Run, ...]:
    """List what is to be heard in a segment's packets, and in the one before and after them.

    A packet sounds right only together with its neighbours, which are encoded with it.
    """
    first, last = (
        (at + more) * SAMPLES
        for at, more in zip(find_packets(programme, number), (-1, 1), strict=True)
    )
    return tuple(
        Run(what=part.what, phase=part.first % ROUND, count=part.last - part.first)
        for part in cut(programme.shots, SOUNDS, RATE, first, last)
    )


@lru_cache(maxsize=KEPT)
def encode_sounds(runs: Sequence[Run]) -> tuple[bytes, ...]:
    """Encode the packets of a segment, without its neighbours."""
    encoder = av.CodecContext.create("aac", "w")
    set_up(encoder)
    samples = b"".join(map(_play, runs))
    packets = []
    for first in range(0, len(samples), SAMPLES * _SAMPLE):
        frame = av.AudioFrame(format="fltp", layout="mono", samples=SAMPLES)
        frame.sample_rate = RATE
        frame.planes[0].update(samples[first : first + SAMPLES * _SAMPLE])
        frame.pts, frame.time_base = first // _SAMPLE, Fraction(1, RATE)
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    end = len(samples) // _SAMPLE - SAMPLES
    return tuple(bytes(one) for one in packets if one.pts and SAMPLES <= one.pts < end)


def set_up(encoder: "av.AudioCodecContext") -> None:
    """Prepare an encoder; those who are prepared alike write alike."""
    encoder.sample_rate, encoder.layout, encoder.format = RATE, "mono", "fltp"
    encoder.time_base, encoder.bit_rate = Fraction(1, RATE), BIT_RATE
    # Noise must stay as loud as it is, and nobody listens for beauty.
    encoder.options = {"aac_coder": "fast", "aac_pns": "0"}


def _play(run: Run) -> bytes:
    table = _table(run.what)
    whole = table[run.phase * _SAMPLE :] + table * (run.count // ROUND + 1)
    return whole[: run.count * _SAMPLE]


@lru_cache
def _table(what: str) -> bytes:
    """Return one round of a sound."""
    if what == "noise":
        chance = chance_of("live", "noise")
        return array("f", (chance.uniform(-_NOISE, _NOISE) for _ in range(ROUND))).tobytes()
    waves, height = _WAVES[what]
    swing = 2 * math.pi * waves / ROUND
    return array("f", (height * math.sin(swing * number) for number in range(ROUND))).tobytes()
