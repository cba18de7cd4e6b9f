"""Words and cells that the commands of the books watch share."""

from typing import Annotated

import typer

from mimawari.watches.books.models import KeptCursor, Run, StopReason

Name = Annotated[str, typer.Argument(metavar="NAME", help="A job's name.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do it without asking.")]

STYLES = {
    StopReason.QUOTA: "yellow",
    StopReason.MAX_PER_RUN: "green",
    StopReason.EXHAUSTED: "cyan",
    StopReason.ERROR: "red",
}


def stopped(run: Run | None) -> str:
    """Tell why a run stopped, in colour."""
    if run is None:
        return "–"
    if run.stop_reason is None:
        return "under way" if run.ended_at is None else "disabled"
    return f"[{STYLES[run.stop_reason]}]{run.stop_reason}[/]"


def place_of(cursor: KeptCursor | None, run: Run | None) -> str:
    """Tell how far the reading has come, of as many as the site told of last."""
    start_index = cursor.start_index if cursor else 0
    total = run.total_items if run else None
    return f"{start_index:,}" if total is None else f"{start_index:,} of {total:,}"
