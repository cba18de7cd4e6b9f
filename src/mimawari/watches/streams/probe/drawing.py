"""Draws what was seen and heard as lanes over time, for a terminal."""

import math
from collections.abc import Mapping, Sequence

from mimawari.media.findings import QUIETEST_LUFS
from mimawari.show import BARS as HEIGHTS
from mimawari.watches.streams.probe import timeline
from mimawari.watches.streams.probe.timeline import Bad, Probed

OK = "ok"
MARKS = {
    OK: ("█", "green"),
    timeline.BLACK: ("░", "red"),
    timeline.FROZEN: ("▒", "yellow"),
    timeline.BARS: ("▚", "magenta"),
    timeline.SILENT: ("░", "red"),
    timeline.NO_TRACK: ("╌", "red"),
    timeline.QUIET: ("▄", "yellow"),
    timeline.LOUD: ("▀", "yellow"),
    timeline.UNSEEN: ("·", "dim"),
}
"""How each state is drawn, so that it is told without colours too."""
LOUDEST_LUFS = -5.0
LABEL = 10
LEAST_WIDTH, MOST_WIDTH = 20, 120
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
_TICK_CELLS = 10
_TWO_DIGITS = 100
_MINUTE = 60


def draw(probed: Probed, columns: int) -> list[str]:
    """Draw the lanes, the time below them, and what each mark means."""
    width = max(LEAST_WIDTH, min(MOST_WIDTH, columns - LABEL))
    lines = []
    shown = {OK}
    for name, has_lane, bad in (
        ("picture", probed.has_picture, probed.picture),
        ("sound", probed.has_sound or probed.has_picture, probed.sound),
    ):
        if has_lane:
            states = lay([*bad, *probed.unseen], probed.seconds, width)
            shown |= set(states)
            lines.append(f"{name:{LABEL}}{_paint(states)}")
    if probed.levels:
        lines.append(f"{'loudness':{LABEL}}{_draw_levels(probed, width)}")
    lines.append(f"{'':{LABEL}}{draw_axis(probed.seconds, width)}")
    return [*lines, f"{'':{LABEL}}{_legend(shown)}"]


def lay(bad: Sequence[Bad], seconds: float, width: int) -> list[str]:
    """Tell for each cell what is in it: something bad hides what is well, however short it is."""
    cells = [OK] * width
    for one in bad:
        first, last = _cell(one.start, seconds, width), _cell(one.end, seconds, width, is_end=True)
        for number in range(first, max(last, first + 1)):
            cells[number] = one.what
    return cells


def _cell(at: float, seconds: float, width: int, *, is_end: bool = False) -> int:
    place = at / seconds * width if seconds > 0 else 0.0
    # What is exact but for how numbers are kept stays in its own cell.
    cell = math.ceil(place - 1e-6) if is_end else math.floor(place + 1e-6)
    return min(max(cell, 0), width if is_end else width - 1)


def _paint(states: Sequence[str]) -> str:
    painted = []
    for state in states:
        mark, style = MARKS[state]
        painted.append((mark, style))
    return _join(painted)


def _join(painted: Sequence[tuple[str, str]]) -> str:
    """Write marks with their colours, one colour after the other."""
    written, last = "", ""
    for mark, style in painted:
        if style != last:
            written += f"{'[/]' if last else ''}[{style}]"
        written, last = written + mark, style
    return f"{written}[/]" if last else written


def _draw_levels(probed: Probed, width: int) -> str:
    loudest: dict[int, float] = {}
    for level in probed.levels:
        moments, span = level.loudness.moments, level.span
        for number, moment in enumerate(moments):
            at = span.start + (number + 0.5) / len(moments) * span.seconds
            cell = _cell(at, probed.seconds, width)
            loudest[cell] = max(loudest.get(cell, QUIETEST_LUFS), moment)
    return "".join(_height(loudest.get(cell)) for cell in range(width)).rstrip()


def _height(lufs: float | None) -> str:
    if lufs is None or lufs <= QUIETEST_LUFS:
        return " "
    share = (lufs - QUIETEST_LUFS) / (LOUDEST_LUFS - QUIETEST_LUFS)
    return HEIGHTS[min(int(share * len(HEIGHTS)), len(HEIGHTS) - 1)]


def draw_axis(seconds: float, width: int) -> str:
    """Write times under the cells where they are, so far apart that they can be read."""
    most = max(1, width // _TICK_CELLS)
    step = next((one for one in _STEPS if seconds / one <= most), _STEPS[-1])
    line = ""
    for number in range(int(seconds / step) + 1):
        at = number * step
        cell = _cell(at, seconds, width)
        label = write_seconds(at)
        if cell >= len(line) + bool(line) and cell + len(label) <= width:
            line += " " * (cell - len(line)) + label
    return line


def write_seconds(seconds: float) -> str:
    """Write a time of the programme briefly."""
    if seconds >= _TWO_DIGITS:
        minutes, rest = divmod(round(seconds), _MINUTE)
        return f"{minutes}:{rest:02}"
    return f"{seconds:g}s"


def _legend(shown: set[str]) -> str:
    named: Mapping[str, tuple[str, str]] = MARKS
    words = [f"[{style}]{mark}[/] {name}" for name, (mark, style) in named.items() if name in shown]
    return "  ".join(words)
