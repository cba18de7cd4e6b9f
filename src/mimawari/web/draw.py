"""Draws charts as SVG on the server: steps, dots, bars, bands and lanes; nothing is smoothed.

What nobody observed is a gap: no line goes over it. Looks come from the style sheet.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from html import escape

from markupsafe import Markup

WIDTH, HEIGHT = 720.0, 220.0
LEFT, RIGHT, TOP, BOTTOM = 56.0, 8.0, 10.0, 24.0
TICKS = 4

Point = tuple[datetime, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Something that is drawn over time."""

    label: str
    points: Sequence[Point]
    kind: str = "step"
    """`step`, `dots`, `bars`, `line` for what is measured at moments, or `band` alone.

    `trace` is a line of so many moments that none of them is marked.
    `level` is a dashed line at the last value, from one side to the other.
    """
    colour: int = 1
    low: Sequence[Point] = ()
    """With these a band is drawn from them up to the points."""
    lasts: timedelta | None = None
    """How long each value holds, as that of an hour or a day does."""
    place: tuple[int, int] = (0, 1)
    """Which of how many bars that stand side by side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of stretches in time, each with a state."""

    label: str
    spans: Sequence[tuple[datetime, datetime, str, str]]
    """From, to, state and what it says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """From when to when and from what to what is drawn."""

    start: datetime
    end: datetime
    top: float
    bottom: float = 0.0

    def x(self, at: datetime) -> float:
        """Return where a time is."""
        whole = max((self.end - self.start).total_seconds(), 1.0)
        part = (at - self.start).total_seconds() / whole
        return LEFT + min(max(part, 0.0), 1.0) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        """Return where a value is."""
        part = (value - self.bottom) / max(self.top - self.bottom, 1e-9)
        return HEIGHT - BOTTOM - min(max(part, 0.0), 1.0) * (HEIGHT - TOP - BOTTOM)


Say = Callable[[float], str]
SayTime = Callable[[datetime], str]


def chart(
    title: str, series: Sequence[Series], frame: Frame, say: Say, say_time: SayTime
) -> Markup:
    """Draw a chart with its axes; every point says its value when it is pointed at."""
    inside = [*_axes(frame, say, say_time)]
    for one in series:
        inside += _draw(one, frame, say, say_time)
    legend = "".join(
        f'<span class="key c{one.colour} k-{one.kind}">{escape(one.label)}</span>' for one in series
    )
    drawn = "".join(inside)
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<figure class="chart"><svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img"'
        f' aria-label="{escape(title)}">{drawn}</svg><figcaption>{legend}</figcaption></figure>'
    )


def make_frame(series: Iterable[Series], start: datetime, end: datetime) -> Frame:
    """Make a frame that holds some series from zero up."""
    values = [value for one in series for _, value in one.points if value is not None]
    return Frame(start=start, end=end, top=_round_up(max(values, default=1.0)))


def _round_up(value: float) -> float:
    step = 1.0
    while step * 10 <= value:
        step *= 10
    return next((step * part for part in (1, 2, 4, 5, 8, 10) if step * part >= value), value)


def _axes(frame: Frame, say: Say, say_time: SayTime) -> Iterator[str]:
    for number in range(TICKS + 1):
        value = frame.bottom + (frame.top - frame.bottom) * number / TICKS
        y = frame.y(value)
        yield f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick" x="{LEFT - 6:g}" y="{y + 4:.1f}">{escape(say(value))}</text>'
        yield _again(y - 3, say(value))
    for number in range(TICKS + 1):
        at = frame.start + (frame.end - frame.start) * number / TICKS
        anchor = "first" if number == 0 else "last" if number == TICKS else "tick-x"
        yield (
            f'<text class="tick {anchor}" x="{frame.x(at):.1f}" y="{HEIGHT - 6:g}">'
            f"{escape(say_time(at))}</text>"
        )


def _again(y: float, text: str) -> str:
    """Write at the new end what stands at the old one, for phones that show only that."""
    x = WIDTH - RIGHT - 3
    return (
        f'<text class="tick again" x="{x:g}" y="{y:.1f}" aria-hidden="true">{escape(text)}</text>'
    )


def _draw(one: Series, frame: Frame, say: Say, say_time: SayTime) -> list[str]:
    drawn: list[str] = []
    runs = list(_runs(one.points))
    if one.low:
        drawn += _band(one, frame)
    if one.kind in {"step", "line", "trace"}:
        drawn += [_path(run, frame, one) for run in runs]
    elif one.kind == "level" and runs:
        y = frame.y(runs[-1][-1][1])
        drawn.append(
            f'<path class="line level c{one.colour}" d="M{LEFT:g} {y:.1f}H{WIDTH - RIGHT:g}"/>'
        )
    mark = {"bars": _bar, "step": _dot, "line": _dot, "dots": _dot}.get(one.kind)
    if mark is not None:
        for at, value in (point for run in runs for point in run):
            said = escape(f"{one.label} {say_time(at)} {say(value)}")
            drawn.append(mark(one, frame, at, value, f"<title>{said}</title>"))
    return drawn


def _runs(points: Sequence[Point]) -> Iterator[list[tuple[datetime, float]]]:
    """Yield the stretches between the gaps."""
    run: list[tuple[datetime, float]] = []
    for at, value in points:
        if value is None:
            if run:
                yield run
            run = []
        else:
            run.append((at, value))
    if run:
        yield run


def _path(run: Sequence[tuple[datetime, float]], frame: Frame, one: Series) -> str:
    steps = [f"M{frame.x(run[0][0]):.1f} {frame.y(run[0][1]):.1f}"]
    for at, value in run[1:]:
        x, y = frame.x(at), frame.y(value)
        steps.append(f"H{x:.1f}V{y:.1f}" if one.kind == "step" else f"L{x:.1f} {y:.1f}")
    if one.kind == "step" and one.lasts is not None:
        steps.append(f"H{frame.x(run[-1][0] + one.lasts):.1f}")
    return f'<path class="line c{one.colour}" d="{"".join(steps)}"/>'


def _band(one: Series, frame: Frame) -> list[str]:
    low = dict(one.low)
    ends = (timedelta(0),) if one.lasts is None else (timedelta(0), one.lasts)
    drawn = []
    for run in _runs(one.points):
        both = [(at, value, low.get(at)) for at, value in run]
        known = [
            (at + end, high, under) for at, high, under in both if under is not None for end in ends
        ]
        if len(known) < 2:  # noqa: PLR2004 - a band has two ends
            continue
        up = [f"{frame.x(at):.1f},{frame.y(high):.1f}" for at, high, _ in known]
        down = [f"{frame.x(at):.1f},{frame.y(under):.1f}" for at, _, under in reversed(known)]
        drawn.append(f'<polygon class="band c{one.colour}" points="{" ".join(up + down)}"/>')
    return drawn


def _dot(one: Series, frame: Frame, at: datetime, value: float, title: str) -> str:
    middle = at + (one.lasts or timedelta(0)) / 2
    return (
        f'<circle class="dot c{one.colour}" cx="{frame.x(middle):.1f}" cy="{frame.y(value):.1f}"'
        f' r="{3 if one.kind == "dots" else 2}">{title}</circle>'
    )


def _bar(one: Series, frame: Frame, at: datetime, value: float, title: str) -> str:
    if one.lasts is None:
        whole = (WIDTH - LEFT - RIGHT) / max(len(one.points), 1)
        left = frame.x(at) - whole / 2
    else:
        left = frame.x(at)
        whole = frame.x(at + one.lasts) - left
    which, many = one.place
    width = max(whole * 0.8 / many, 0.8)
    y = frame.y(value)
    return (
        f'<rect class="bar c{one.colour}" x="{left + whole * 0.1 + which * width:.1f}" y="{y:.1f}"'
        f' width="{width:.1f}" height="{max(HEIGHT - BOTTOM - y, 0.0):.1f}">{title}</rect>'
    )


def sparkline(values: Sequence[float | None], label: str) -> Markup:
    """Draw a small row of bars; where nothing was observed there is none."""
    known = [value for value in values if value is not None]
    most = max(known, default=0.0) or 1.0
    step = 100 / max(len(values), 1)
    bars = "".join(
        f'<rect class="bar c1" x="{place * step:.2f}" y="{24 - 22 * value / most:.2f}"'
        f' width="{step * 0.8:.2f}" height="{max(22 * value / most, 0.6):.2f}"/>'
        for place, value in enumerate(values)
        if value is not None
    )
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(label)}">{bars}</svg>'
    )


def lanes(title: str, rows: Sequence[Lane], frame: Frame, say_time: SayTime) -> Markup:
    """Draw rows of states over time, with when under them; what is newest is in sight first."""
    height = 26 * len(rows) + 22
    drawn = []
    for place, row in enumerate(rows):
        y = 26 * place
        drawn.append(f'<text class="tick" x="{LEFT - 6:g}" y="{y + 17}">{escape(row.label)}</text>')
        for start, end, state, words in row.spans:
            x = frame.x(start)
            width = max(frame.x(end) - x, 0.8)
            drawn.append(
                f'<rect class="lane s-{escape(state)}" x="{x:.1f}" y="{y + 3}" width="{width:.1f}"'
                f' height="20"><title>{escape(words)}</title></rect>'
            )
    for number in range(TICKS + 1):
        at = frame.start + (frame.end - frame.start) * number / TICKS
        anchor = "first" if number == 0 else "last" if number == TICKS else "tick-x"
        drawn.append(
            f'<text class="tick {anchor}" x="{frame.x(at):.1f}" y="{height - 4}">'
            f"{escape(say_time(at))}</text>"
        )
    svg = Markup(  # noqa: S704 - every text in it is escaped
        f'<svg class="lanes" viewBox="0 0 {WIDTH:g} {height}" role="img"'
        f' aria-label="{escape(title)}">{"".join(drawn)}</svg>'
    )
    # Where only a part fits, names stay beside it.
    names = Markup("").join(Markup("<li>{}</li>").format(row.label) for row in rows)
    return Markup(
        '<div class="laned"><ul class="lane-names" aria-hidden="true">{}</ul>'
        '<div class="scroll late" tabindex="0" role="group" aria-label="{}">{}</div></div>'
    ).format(names, title, svg)


def lane_keys(said: Mapping[str, str]) -> Markup:
    """Write what the colours of lanes mean, by state."""
    key = Markup('<span class="key k-lane s-{}">{}</span>')
    return Markup(" ").join(key.format(state, words) for state, words in said.items())


def gauge(used: float, most: float, label: str) -> Markup:
    """Draw how much of something is used up."""
    share = min(max(used / most, 0.0), 1.0) if most else 0.0
    return Markup(  # noqa: S704 - every text in it is escaped
        f'<meter min="0" max="1" value="{share:.3f}" aria-label="{escape(label)}"></meter>'
    )
