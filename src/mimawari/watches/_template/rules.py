"""Decisions, pure: no I/O here."""

from datetime import timedelta

SLOWEST = timedelta(hours=2)


def has_grown(before: int | None, now: int) -> bool:
    """Tell whether a number is news."""
    return before is None or now > before


def next_every(every: timedelta, *, grown: bool) -> timedelta:
    """Come sooner to a page that changes, later to one that does not."""
    return every if grown else min(every * 2, SLOWEST)
