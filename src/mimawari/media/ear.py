"""Hears where there is silence in a sound, and how loud it is."""

import math

import av

from mimawari.media.filters import Filter
from mimawari.media.findings import QUIETEST_LUFS, Look, Loudness
from mimawari.media.taking import Taking

HEARD_SECONDS = 0.02
"""Silence is found from this length on; shorter ones are parts of a wave."""
# A frame is loud throughout when each of its stretches is, of which some samples are looked at.
_STEP, _STRETCH = 32, 8
_LEAST_RATE = round(2 * _STEP * _STRETCH / HEARD_SECONDS)
"""With fewer samples a second, two stretches are as long as a silence."""
_START, _END = "lavfi.silence_start", "lavfi.silence_end"
_MOMENT, _SHORT = "lavfi.r128.M", "lavfi.r128.S"
# A meter tells a moment for every few frames, and each look for one in vain takes time.
_FRAMES_A_LOOK = 16
# Moments of which there are not yet 0.4 seconds are told as if there were silence before.
_FIRST_MOMENTS = 3


class Ear:
    """Hears where there is silence, and where asked, how loud the rest is."""

    def __init__(self, look: Look) -> None:
        self.taking = Taking()
        self._filter = Filter("silencedetect", f"n={look.silence_db:g}dB:d={HEARD_SECONDS}")
        self._level = 10 ** (look.silence_db / 20)
        self._before: av.AudioFrame | None = None
        self._is_listening = False
        self._meter = _Meter() if look.has_loudness else None

    def take(self, frame: av.AudioFrame) -> None:
        """Listen to some samples."""
        at = frame.time
        if at is None:
            return
        self.taking.pass_by(at, at + frame.samples / frame.sample_rate)
        is_loud = self._is_loud(frame)
        if is_loud and not self._is_listening:
            self._before = frame
        else:
            # A silence may begin with the end of one loud frame and last into the next.
            if self._before is not None:
                self._hear(self._before)
            self._before = None
            self._hear(frame)
        self._is_listening = not is_loud
        if self._meter is not None:
            self._meter.take(frame)

    def _is_loud(self, frame: av.AudioFrame) -> bool:
        """Say whether a frame is loud for sure and throughout; most are, and need no filter."""
        if frame.format.name != "fltp" or frame.sample_rate < _LEAST_RATE:
            return False
        samples = memoryview(frame.planes[0]).cast("f")[: frame.samples : _STEP].tolist()
        for first in range(0, len(samples), _STRETCH):
            stretch = samples[first : first + _STRETCH]
            if max(stretch) <= self._level and min(stretch) >= -self._level:
                return False
        return True

    def _hear(self, frame: av.AudioFrame) -> None:
        if self._filter.push(frame):
            self.taking.close(frame.time or 0.0)
        heard = self._filter.pull()
        if heard is not None and (said := heard.metadata):
            self._note(said)

    def _note(self, said: dict[str, str]) -> None:
        """Note in its order what a frame says: a silence may end and another begin, or both."""
        edges = [(float(said[key]), key) for key in (_START, _END) if key in said]
        for at, key in sorted(edges):
            if key == _START:
                self.taking.open(at)
            else:
                self.taking.close(at)

    def finish(self) -> Loudness | None:
        """Return how loud it is, where that was asked for and there is sound."""
        has_sound = self.taking.start is not None
        return self._meter.finish() if self._meter is not None and has_sound else None


class _Meter:
    """Measures loudness as EBU R128 has it."""

    def __init__(self) -> None:
        self._filter = Filter("ebur128", "metadata=1:framelog=quiet")
        self._frames = 0
        self._moments: list[float] = []
        self._short_term = QUIETEST_LUFS
        self._unready = 0

    def take(self, frame: av.AudioFrame) -> None:
        """Listen to some samples."""
        if self._filter.push(frame):
            self._unready = _FIRST_MOMENTS
        self._frames += 1
        if self._frames % _FRAMES_A_LOOK == 0:
            self._read()

    def _read(self) -> None:
        for frame in self._filter.drain():
            said = frame.metadata
            self._short_term = max(self._short_term, _lufs(said, _SHORT))
            if self._unready:
                self._unready -= 1
            else:
                self._moments.append(_lufs(said, _MOMENT))

    def finish(self) -> Loudness:
        """Return what was measured."""
        self._read()
        loud = self._short_term if self._short_term > QUIETEST_LUFS else None
        return Loudness(moments=tuple(self._moments), short_term=loud)


def _lufs(said: dict[str, str], key: str) -> float:
    """Read a loudness; samples that are no numbers have none."""
    told = float(said.get(key, QUIETEST_LUFS))
    return round(max(told, QUIETEST_LUFS), 1) if math.isfinite(told) else QUIETEST_LUFS
