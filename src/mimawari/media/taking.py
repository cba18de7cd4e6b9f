"""Notes when a track is bad, as its frames come."""

import math
from dataclasses import dataclass, field

from mimawari.media.findings import Span, Track


@dataclass(slots=True)
class Taking:
    """The times of a track as they come, with the one bad run that is open."""

    start: float | None = None
    end: float = -math.inf
    opened: float | None = None
    bad: list[Span] = field(default_factory=list)

    def pass_by(self, start: float, end: float) -> None:
        """Note that the track goes on."""
        if self.start is None or start < self.start:
            self.start = start
        self.end = max(self.end, end)

    def open(self, at: float) -> None:
        """Note where a bad run begins."""
        self.opened = at if self.opened is None else self.opened

    def close(self, at: float) -> None:
        """Note where it ends."""
        if self.opened is None or at <= self.opened:
            self.opened = None
            return
        if self.bad and self.bad[-1].end >= self.opened:
            self.bad[-1] = Span(start=self.bad[-1].start, end=at)
        else:
            self.bad.append(Span(start=self.opened, end=at))
        self.opened = None

    def finish(self) -> Track | None:
        """Return the track; a run that is open lasts to its end."""
        if self.start is None:
            return None
        self.close(self.end)
        whole = Span(start=self.start, end=self.end)
        return Track(whole=whole, bad=tuple(self.bad))
