"""Runs of 404s from one site: what is kept of them, and what a store does with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class RunState(StrEnum):
    """What is known about a site's 404s in a row."""

    COUNTING = "counting"
    CONTROL = "control"
    """The next request to the site is the control request."""
    HELD = "held"
    """The control request was answered 404, too: the site is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFoundRun:
    """A site's 404s since an item's page was last read."""

    site: str
    state: RunState = RunState.COUNTING
    answers: int = 0
    holds: int = 0
    """How many holds followed each other."""
    item_asked: bool = False
    """Whether the control request already went to an item, which was 404 as well."""
    began_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFound:
    """A job that ended with a 404 in the current run, and what undoes its effects."""

    site: str
    job_id: str
    kind: str
    target: str | None
    at: datetime
    undo: Mapping[str, Any] = field(default_factory=dict)


class NotFoundRuns(Protocol):
    """Runs of 404s, shared by all processes."""

    async def find(self, site: str) -> NotFoundRun | None:
        """Return the current run of a site, without locking it."""


class NotFoundTx(Protocol):
    """What a transaction does with a run of 404s."""

    async def find(self, site: str) -> NotFoundRun | None:
        """Return the current run of a site, without locking it."""

    async def lock(self, site: str) -> NotFoundRun:
        """Return the current run of a site, locked until the transaction ends."""

    async def save(self, run: NotFoundRun) -> None:
        """Replace a run that is locked."""

    async def add(self, item: NotFound) -> None:
        """Add a job to the run of its site."""

    async def list(self, site: str, before: datetime | None = None) -> Sequence[NotFound]:
        """List the jobs of a run, oldest first: all, or those that ended before a time."""

    async def drop(self, items: Sequence[NotFound], *, end_streaks: bool) -> None:
        """Remove jobs from their run; `end_streaks` forgets the failures of their targets."""

    async def requeue(self, items: Sequence[NotFound], reason: str, blocked_by: str) -> None:
        """Return ended jobs to their places in the queue, with the attempt that was used up."""

    async def hasten(self, key: str) -> None:
        """Make the pending job with this key due now."""

    async def hold(self, run: NotFoundRun, until: datetime, reason: str) -> None:
        """Open the breaker of a run's site until a time."""

    async def release(self, site: str) -> None:
        """Close the breaker of a site."""
