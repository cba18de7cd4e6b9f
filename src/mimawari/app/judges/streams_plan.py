"""Draws the programmes that the streams watch is judged by: incidents around every threshold."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar

from mimawari.sim.chance import Chance, chance_of
from mimawari.sim.sites.youtube.observed import silent_kinds
from mimawari.sim.sites.youtube.programme import (
    FPS,
    NO_SOUND,
    SOUNDS,
    Container,
    Programme,
    Shot,
    Upset,
)
from mimawari.watches.streams.models import Config, Sense

T = TypeVar("T")

INCIDENTS = 11
"""So many incidents each programme has at least."""
THRESHOLDS = (5, 6, 8, 10, 10, 12, 15, 20, 30, 60)
INTERVALS = (2, 3, 5, 8, 10, 10, 15, 20)
SILENCES = (-65.0, -50.0, -50.0, -45.0, -30.0)
SEGMENTS = (1.0, 2.0, 2.0, 4.0, 5.0)
LONGEST, LEAST_USUAL = 120 * FPS, 5 * FPS
BLOCKS = ("black", "silence", "both", "overlap", "split", "mute", "black", "silence")
"""What is bad: one, the other, both at once, one into the other, and so on."""
LENGTHS = ("exact", "just over", "just under", "under", "over", "over")
UPSETS = (
    *("gap", "gap", "missing", "garbage", "encrypted", "break", "restart", "restart"),
    *("stall", "stall", "long stall", "stale", "forbidden", "forbidden network", "not_playlist"),
    *("", "", "", "", "", ""),
)
ENCRYPTED, STALE = "encrypted_unsupported", "stale_playlist"
UNHEARD_FRAMES = 3
"""A silence that lacks less than this to its threshold is within what can be measured."""
LEAST_REST = 10
"""So many frames are good between two blocks at the least."""
RESTART_AFTER = 45
"""A list that begins again sooner cannot be told from one that stands a little behind."""
ASKED_EVERY = 300.0
"""After so many seconds it is asked whether a stream is live still."""
KEPT_SECONDS = 120
"""Lists name this much where something keeps those who ask away for a while."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A time of the clock in which something keeps those who ask from what is published."""

    start: float
    until: float
    """By when all that was published meanwhile is to be had again, and looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A programme, how it is monitored, and what else is to be told of it."""

    programme: Programme
    config: Config
    holds: tuple[Hold, ...]
    errors: tuple[str, ...]
    """The reasons of all segment errors, in their order."""


def draw_scripts(seed: int, count: int, begin_at: datetime) -> list[Script]:
    """Draw so many programmes that are on at a time."""
    chance = chance_of("check streams", seed)
    dealt = zip(
        _deal(chance, THRESHOLDS, count),
        _deal(chance, THRESHOLDS, count),
        _deal(chance, INTERVALS, count),
        _deal(chance, SILENCES, count),
        _deal(chance, SEGMENTS, count),
        strict=True,
    )
    scripts = []
    for number, (black, silent, interval, silence_db, segment) in enumerate(dealt):
        config = Config(
            check_interval_sec=interval,
            blackout_threshold_sec=black,
            silence_threshold_sec=silent,
            silence_db_threshold=silence_db,
        )
        draft = _Draft(chance_of("check streams", seed, number), config, segment, number)
        scripts.append(draft.write(f"check-{number:05d}", begin_at))
    return scripts


def _deal(chance: Chance, values: Sequence[T], count: int) -> list[T]:
    """Deal values such that each comes as often as any other."""
    return [value for value, _ in zip(_shuffled(chance, values), range(count), strict=False)]


def _shuffled(chance: Chance, values: Sequence[T]) -> Iterator[T]:
    while True:
        yield from chance.sample(list(values), len(values))


@dataclass(slots=True)
class _Bad:
    """From which frame to which something is bad."""

    what: str
    first: int
    last: int

    def shot(self) -> Shot:
        return Shot(what=self.what, start=self.first / FPS, end=self.last / FPS)


@dataclass(slots=True)
class _Made:
    """What a draft consists of so far."""

    around: list[Shot] = field(default_factory=list)
    """What looks or sounds as if it were bad; it comes before what is."""
    shots: list[Shot] = field(default_factory=list)
    upsets: list[Upset] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


class _Draft:
    """Puts a programme together, block by block, in frames."""

    def __init__(self, chance: Chance, config: Config, segment: float, number: int) -> None:
        self._chance = chance
        self._config = config
        self._segment = round(segment * FPS)
        self._is_dated = number % 3 != 2  # noqa: PLR2004 - every third one is undated
        self._blocks = _shuffled(chance, BLOCKS)
        self._upsets = _shuffled(chance, UPSETS)
        self._lengths = {sense: _shuffled(chance, LENGTHS) for sense in Sense}
        self._made = _Made()
        self._lead = chance.randint(5, 30)
        self._shift = 0.0
        """By how many seconds the clock is ahead of the programme, for it stalled."""
        self._at = (self._lead + config.check_interval_sec) * FPS + 3 * self._segment
        self._free_at = 0.0
        """From when on by the clock nothing of the last upset lasts any more."""
        self._count = 0

    def write(self, video_id: str, begin_at: datetime) -> Script:
        """Write it down with as many incidents as it should have."""
        while self._count < INCIDENTS:
            self._add(next(self._blocks))
        # Who is kept away until it is over cannot be told where it was.
        free = math.ceil((self._free_at - self._shift) * FPS)
        self._at = max(self._at, free) + 2 * self._segment + 10 * FPS
        self._trouble()
        made = self._made
        container: Container = self._chance.choice(("ts", "fmp4"))
        programme = Programme(
            video_id=video_id,
            title=f"検査用配信 {video_id}",
            starts_at=begin_at - timedelta(seconds=self._lead),
            seconds=self._at / FPS,
            shots=(*made.around, *made.shots),
            upsets=tuple(made.upsets),
            segment_seconds=self._segment / FPS,
            container=container,
            is_dated=self._is_dated,
            window=self._window(),
        )
        return Script(
            programme=programme,
            config=self._config,
            holds=tuple(made.holds),
            errors=tuple(made.errors),
        )

    def _trouble(self) -> None:
        """Keep the resolver from answering when it is asked whether the stream is live still."""
        upsets = {one.what for one in self._made.upsets}
        if "forbidden" in upsets or STALE in self._made.errors:
            return
        what = self._chance.choice(("bot", "rate", "members", "region", "network"))
        again = self._lead + ASKED_EVERY
        self._made.upsets.append(Upset(what=what, start=again - 10, end=again + 30))

    def _window(self) -> int:
        """Tell how many segments lists name: few, unless somebody may be kept away."""
        if not self._made.holds:
            return self._chance.randint(6, 15)
        return -(-KEPT_SECONDS * FPS // self._segment)

    def _add(self, block: str) -> None:
        """Add what is bad, with something that goes wrong in it or behind it."""
        upset = next(self._upsets)
        bad = [*self._draw(block)]
        is_alone = len(bad) == 1 and block != "mute"
        if self._is_hiding(upset) and is_alone and self._hide(upset, bad[0]):
            upset = ""
        self._made.shots += [one.shot() for one in bad]
        self._count += len(bad)
        end = max(one.last for one in bad)
        if len(bad) == 1:
            self._distract(bad[0])
        if upset and not self._is_hiding(upset) and upset != "restart":
            frame = self._chance.randint(min(one.first for one in bad), end)
            if "stall" in upset and not self._is_dated:
                frame = max(frame, *(one.first + self._unread() for one in bad))
            self._upset(upset, frame)
            end, upset = max(end, frame), ""
        self._at = end + self._chance.randint(LEAST_REST, 6 * FPS)
        if upset:
            self._upset_between(upset)

    def _draw(self, block: str) -> Iterator[_Bad]:
        """Draw what of a block is bad."""
        at = self._at
        silent = self._chance.choice(sorted(silent_kinds(self._config.silence_db_threshold)))
        match block:
            case "black" | "both" | "overlap":
                black = _Bad("black", at, at + self._length(Sense.BLACKOUT))
                yield black
                later = self._chance.randrange(black.last - at) if block == "overlap" else 0
                if block != "black":
                    yield _Bad(silent, at + later, at + later + self._length(Sense.SILENCE))
            case "split":
                # One single picture ends a black-out.
                middle = at + self._length(Sense.BLACKOUT)
                yield _Bad("black", at, middle)
                yield _Bad("black", middle + 1, middle + 1 + self._length(Sense.BLACKOUT))
            case "silence":
                yield _Bad(silent, at, at + self._length(Sense.SILENCE))
            case _:
                yield self._mute(at)

    def _mute(self, at: int) -> _Bad:
        """Leave the sound track away from whole segments."""
        size = self._segment
        first = -(-at // size) * size
        return _Bad(NO_SOUND, first, first + -(-self._length(Sense.SILENCE) // size) * size)

    def _length(self, sense: Sense) -> int:
        """Draw for how many frames something is bad."""
        enough = (self._config.threshold(sense) or 0) * FPS
        match next(self._lengths[sense]):
            case "exact":
                return enough
            case "just over":
                return enough + 1
            case "just under":
                return enough - (1 if sense is Sense.BLACKOUT else UNHEARD_FRAMES)
            case "under":
                return self._chance.randint(min(LEAST_USUAL, enough // 2), enough - FPS)
            case _:
                return self._chance.randint(enough + FPS, min(LONGEST, 2 * enough + LEAST_USUAL))

    def _distract(self, bad: _Bad) -> None:
        """Let the other half be as good as bad meanwhile, though it is not."""
        silent = silent_kinds(self._config.silence_db_threshold)
        near = ("near_black", "bars", "freeze")
        others = near if bad.what != "black" else sorted(SOUNDS - silent)
        what = self._chance.choice(others)
        start, end = bad.first - self._chance.randint(0, 10), bad.last + self._chance.randint(0, 10)
        self._made.around.append(_Bad(what, start, end).shot())

    def _is_hiding(self, upset: str) -> bool:
        return upset in {"gap", "missing", "garbage", "encrypted"}

    def _hide(self, upset: str, bad: _Bad) -> bool:
        """Hide segments inside of what is bad, which lasts so much longer; say if there are any."""
        size = self._segment
        numbers = range(bad.first // size + 1, -(-bad.last // size))
        if not numbers or not self._is_free(numbers[0] * size):
            return False
        first = self._chance.choice(numbers) * size
        hidden = self._draw_hidden(upset) * size
        self._hide_at(upset, first, hidden)
        bad.last += hidden
        return True

    def _draw_hidden(self, upset: str) -> int:
        return self._chance.randint(1, 3) if upset in {"gap", "encrypted"} else 1

    def _hide_at(self, upset: str, first: int, frames: int) -> None:
        start, end = first / FPS, (first + frames) / FPS
        self._made.upsets.append(Upset(what=upset, start=start, end=end))
        if upset == "encrypted" and ENCRYPTED not in self._made.errors:
            self._made.errors.append(ENCRYPTED)
        if upset in {"missing", "garbage"}:
            # It is tried again after 2, 4 and 8 seconds.
            clock = end + self._shift
            self._hold(clock, clock + self._config.check_interval_sec + 14)

    def _unread(self) -> int:
        """Tell within how many frames something was looked into for sure.

        Of what stalls sooner, nobody who is told no dates can say whether it did so before.
        """
        return self._config.check_interval_sec * FPS + 2 * self._segment

    def _is_free(self, frame: int) -> bool:
        return frame / FPS + self._shift >= self._free_at

    def _hold(self, start: float, until: float) -> None:
        self._made.holds.append(Hold(start=start, until=until))
        self._free_at = until + 2 * self._config.check_interval_sec

    def _upset(self, upset: str, frame: int) -> None:
        """Let something go wrong with the list or with production from some frame on."""
        if not self._is_free(frame):
            return
        moment = frame / FPS
        clock = moment + self._shift
        interval = self._config.check_interval_sec
        match upset:
            case "break":
                self._made.upsets.append(Upset(what="break", start=moment, end=moment))
            case "stall" | "long stall":
                seconds = self._chance.randint(12, 45) if upset == "stall" else 90
                self._made.upsets.append(Upset(what="stall", start=clock, end=clock + seconds))
                self._free_at = clock + seconds + 2 * interval
                self._shift += seconds
                if upset == "long stall":
                    self._made.errors.append(STALE)
            case "forbidden" | "forbidden network":
                self._forbid(clock, has_trouble=upset != "forbidden")
            case _:
                seconds = self._chance.randint(10, 40 if upset == "stale" else 25)
                self._made.upsets.append(Upset(what=upset, start=clock, end=clock + seconds))
                if upset == "stale":
                    self._hold(clock, clock + seconds + interval)
                else:
                    # Who is told nothing waits longer each time: 5, 10 and 20 seconds.
                    self._hold(clock - interval, clock + seconds + max(interval, 20))

    def _forbid(self, clock: float, *, has_trouble: bool) -> None:
        """Make all addresses invalid; a new one is asked for after 5 seconds, or 15 at the most."""
        interval = self._config.check_interval_sec
        trouble_for = self._chance.randint(10, 25) if has_trouble else 0
        if has_trouble:
            what = Upset(what="network", start=clock, end=clock + interval + trouble_for)
            self._made.upsets.append(what)
        until = clock + interval + trouble_for + (20 if has_trouble else 15)
        self._made.upsets.append(Upset(what="forbidden", start=clock, end=until + 30))
        self._hold(clock - interval, until)
        self._free_at += 30

    def _upset_between(self, upset: str) -> None:
        """Let something go wrong where all is good, and stays so for a while."""
        size, at = self._segment, self._at
        if not self._is_free(at):
            return
        first = (at // size + 1) * size
        if self._is_hiding(upset):
            frames = self._draw_hidden(upset) * size
            self._hide_at(upset, first, frames)
            self._at = first + frames + self._chance.randint(1, 2 * FPS)
            return
        around = self._config.check_interval_sec * FPS + 2 * size
        restart = at + around
        is_first = all(one.what != "restart" for one in self._made.upsets)
        if is_first and self._is_dated and restart // size >= RESTART_AFTER:
            self._made.upsets.append(Upset(what="restart", start=restart / FPS, end=restart / FPS))
            self._at = restart + around
