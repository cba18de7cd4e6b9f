"""Bars that show how far long work has come, to people and not to programs."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mimawari import show


def open_bars() -> Progress:
    """Make bars with what is done of how many, gone when the work is; none off a terminal."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=show.complaints,
        transient=True,
        disable=not show.complaints.is_terminal,
    )
