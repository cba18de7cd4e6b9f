"""Says to people at a terminal what their jobs wait for, and lets them stop waiting."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo

import typer

from mimawari import show

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended, as shells have it."""


class Waits:
    """Says once for each reason what jobs wait for, and until when."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._said: dict[str, str] = {}

    def say(self, name: str, next_at: datetime | None, reason: str | None) -> None:
        """Say what a job waits for, if that is news."""
        if reason is None or self._said.get(name) == reason:
            return
        if not self._said:
            _print("Ctrl-C ends the waiting; what was asked for stays in the queue.")
        self._said[name] = reason
        until = f" until {show.short(next_at, self._zone)}" if next_at else ""
        _print(f"{show.plain(name, most=40)} waits{until}: {show.plain(reason, most=500)}")


@contextmanager
def interruptible(more: str) -> Iterator[None]:
    """End a command by Ctrl-C with a sentence; its jobs stay in the queue."""
    try:
        yield
    except KeyboardInterrupt:
        _print(f"Not waited for any longer: what was asked for stays in the queue; {more}")
        raise typer.Exit(INTERRUPTED) from None


def _print(line: str) -> None:
    show.complaints.print(line, markup=False, soft_wrap=True, highlight=False)
