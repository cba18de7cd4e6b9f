"""What a benchmark reports: rows, a table to read and a JSON file."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

COLUMNS = ("engine", "measure", "ours", "peer", "peer's", "x peer's", "floor", "x floor")
TEXTS = ("engine", "measure", "peer")


@dataclass(frozen=True, slots=True)
class Row:
    """Our median beside that of one peer, and beside the raw floor's."""

    bench: str
    engine: str
    measure: str
    ours: float
    peer: str | None
    peer_value: float | None
    ratio_to_peer: float | None
    floor: float | None
    ratio_to_floor: float | None
    runs: int


@dataclass(frozen=True, slots=True)
class Part:
    """One part's rows, with a note per program on how it was set."""

    rows: Sequence[Row]
    notes: Sequence[str]


def ratio(ours: float, other: float | None) -> float | None:
    """Divide ours by the other to three digits, if there is another."""
    return None if other is None else float(f"{ours / other:.3g}")


def write(rows: Sequence[Row], path: Path) -> None:
    """Write the rows as a JSON list, in place of the file's rows of the same benchmarks."""
    measured = {row.bench for row in rows}
    before = json.loads(path.read_text()) if path.exists() else []
    kept = [row for row in before if row["bench"] not in measured]
    path.write_text(json.dumps(kept + [asdict(row) for row in rows], indent=2) + "\n")


def show(name: str, part: Part, console: Console) -> None:
    """Print a part's rows as a table, and its notes below."""
    table = Table(title=name, title_justify="left", box=SIMPLE_HEAD)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in TEXTS else "right")
    for row in part.rows:
        table.add_row(*cells(row))
    console.print(table)
    for note in part.notes:
        console.print(note, markup=False, highlight=False)


def cells(row: Row) -> tuple[str, ...]:
    """Give a row's cells as text."""
    return (
        row.engine,
        row.measure,
        number(row.ours),
        row.peer or "-",
        number(row.peer_value),
        times(row.ratio_to_peer),
        number(row.floor),
        times(row.ratio_to_floor),
    )


def number(value: float | None) -> str:
    """Write a value with thousands apart, or a dash for none."""
    return "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:,.3g}"


def times(value: float | None) -> str:
    """Write a ratio, or a dash for none."""
    return "-" if value is None else f"{value:.3g}"
