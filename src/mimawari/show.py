"""How the command line shows things: tables for people, JSON for programs."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from mimawari.text import format_duration, plain_line

console = Console(emoji=False)
complaints = Console(stderr=True, emoji=False)

STYLES = {
    "done": "green",
    "failed": "red",
    "permanent_fail": "red",
    "processing": "cyan",
    "pending": "yellow",
}
BARS = "▁▂▃▄▅▆▇█"


def as_json(value: Any) -> str:
    """Write a value for programs."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=_plain)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return str(value)


def when(at: datetime | None, now: datetime, zone: tzinfo | None = None) -> str:
    """Say a time the way people do, in their own zone unless another is given."""
    if at is None:
        return "–"
    span = at - now
    local = at.astimezone(zone).strftime("%m-%d %H:%M:%S")
    if span >= timedelta(0):
        return f"{local} (in {format_duration(span)})"
    return f"{local} ({format_duration(-span)} ago)"


def short(at: datetime | None, zone: tzinfo | None = None) -> str:
    """Say a time briefly, in the zone of whoever reads it unless another is given."""
    return "–" if at is None else at.astimezone(zone).strftime("%m-%d %H:%M")


Cell = Callable[[Any], str]


def table(rows: Sequence[Any], columns: Mapping[str, Cell], *, empty: str) -> None:
    """Show rows, or a sentence that says what to do when there are none."""
    console.print(lay_table(rows, columns) if rows else empty)


def lay_table(rows: Sequence[Any], columns: Mapping[str, Cell]) -> Table:
    """Lay out rows as they are shown."""
    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        shown.add_column(name, overflow="fold", no_wrap=name == "id")
    for row in rows:
        shown.add_row(*(cell(row) for cell in columns.values()))
    return shown


def facts(pairs: Mapping[str, str]) -> None:
    """Show one thing, a fact a line."""
    for line in lay_facts(pairs):
        # Never broken over lines, so that a path or an address can be copied whole.
        console.print(line, soft_wrap=True, highlight=False)


def lay_facts(pairs: Mapping[str, str]) -> list[str]:
    """Lay out one thing, a fact a line."""
    width = max(map(len, pairs))
    return [f"[bold]{name:{width}}[/]  {value}" for name, value in pairs.items()]


def say(sentence: str) -> None:
    """Show a sentence as it is, never broken over lines."""
    console.print(sentence, soft_wrap=True, highlight=False, markup=False)


def state(name: str) -> str:
    """Colour a state."""
    style = STYLES.get(name)
    return f"[{style}]{name}[/]" if style else name


def plain(text: str, *, most: int = 60) -> str:
    """Return a text on one line that runs from left to right, for a sentence."""
    return plain_line(text, most=most)


def cell(text: str | None, *, most: int = 60) -> str:
    """Fit a text into a table's cell, whatever it holds."""
    return escape(plain(text, most=most)) if text else "–"


def sparkline(values: Sequence[int | None]) -> str:
    """Draw a bar for each value, from zero up; where nothing was observed there is a gap."""
    most = max((value for value in values if value is not None), default=0)
    return "".join(" " if value is None else _bar(value, most) for value in values)


def _bar(value: int, most: int) -> str:
    # Rounded up, so that anything is seen to be more than nothing.
    return BARS[-(-value * (len(BARS) - 1) // most)] if value > 0 else BARS[0]
