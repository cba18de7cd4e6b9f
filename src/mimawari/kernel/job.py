"""What a job is, from its being asked for to its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from mimawari.ids import new_id

Args = Mapping[str, Any]

NORMAL = 100
"""The priority of a job nobody is waiting for; a smaller number goes first."""

AT_ONCE = 10
"""The priority of what a person waits for."""

LAST = 1_000_000
"""The largest priority, which goes last."""

KIND = 64
"""How many characters a kind may have."""

NAME = 190
"""How many characters a key or a target may have."""

SUSPECT_AFTER = 2
"""A job that was running in this many crashes runs alone among its like from then on."""


def check_names(*names: tuple[str | None, int]) -> None:
    """Refuse names that no store has room for, on every store alike."""
    for name, most in names:
        if name is not None and len(name) > most:
            raise ValueError(f"{name[:40]!r}… is longer than {most} characters")


class State(StrEnum):
    """Where a job stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    DONE = "done"
    FAILED = "failed"
    PERMANENT_FAIL = "permanent_fail"


LIVE = (State.PENDING, State.PROCESSING)
ENDED = (State.DONE, State.FAILED, State.PERMANENT_FAIL)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job to be accepted; of two with one key only the first lives."""

    kind: str
    args: Args = field(default_factory=dict)
    dedupe_key: str | None = None
    target: str | None = None
    priority: int = NORMAL
    run_at: datetime | None = None
    reason: str | None = None
    id: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        """Refuse a time whose zone is unknown, and names that no store has room for."""
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise ValueError("run_at needs a time zone")
        check_names((self.kind, KIND), (self.dedupe_key, NAME), (self.target, NAME))
        if abs(self.priority) > LAST:
            raise ValueError(f"priority is from -{LAST} to {LAST}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A claimed job: ours until the lease is lost, and the token proves it."""

    id: str
    kind: str
    args: Args
    dedupe_key: str | None
    target: str | None
    token: int
    attempt: int
    crashes: int
    enqueued_at: datetime
    broken: str | None = None
    stops: int = 0
    """How often the guard ended a process that had it in hand; one with any runs alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """How many jobs of a kind a worker has room for."""

    kind: str
    most: int
    lease_for: timedelta
    suspects: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """How a claimed job ends, or goes back to the queue when `state` is pending."""

    id: str
    token: int
    state: State
    run_at: datetime | None = None
    reason: str | None = None
    blocked_by: str | None = None
    attempt_used: bool = True
    crashed: bool = False
    page: bytes | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn gave: the ends that counted, those refused as stale, and new work."""

    accepted: frozenset[str]
    refused: frozenset[str]
    jobs: tuple[Job, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A claim to be kept alive until a time."""

    id: str
    token: int
    until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job as people see it, live or ended."""

    id: str
    kind: str
    state: State
    args: Args
    dedupe_key: str | None
    target: str | None
    priority: int
    attempts: int
    next_at: datetime | None
    reason: str | None
    blocked_by: str | None
    worker: str | None
    enqueued_at: datetime
    ended_at: datetime | None
    page_bytes: int | None = None
