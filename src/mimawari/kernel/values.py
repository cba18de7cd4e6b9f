"""The values that the ports speak of, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum
from typing import Any, Literal

from mimawari.kernel.clock import Mark
from mimawari.kernel.exchange import Exchange
from mimawari.kernel.job import KIND, NAME, Args, NewJob, check_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A target on the schedule: the job that is enqueued for it, when and how often."""

    member: str
    kind: str
    next_at: datetime
    every: timedelta
    args: Args = field(default_factory=dict)
    reason: str | None = None

    def __post_init__(self) -> None:
        """Refuse names that no store has room for."""
        check_names((self.member, NAME), (self.kind, KIND))


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """Takes a due entry: on to its next time, and its job into the queue, if nobody was faster."""

    member: str
    seen_at: datetime
    next_at: datetime
    job: NewJob | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `count` requests in any `per`, one each `per / count` unless said otherwise."""

    name: str
    count: int
    per: timedelta
    apart: timedelta | None = None

    @property
    def spacing(self) -> timedelta:
        """The least time between two grants."""
        return self.per / self.count if self.apart is None else self.apart


@dataclass(frozen=True, slots=True)
class Grant:
    """Leave for one request, good until `valid_until` in true time."""

    limit: str
    id: str
    mark: Mark
    valid_for: timedelta

    def is_valid(self, now: Mark) -> bool:
        """Tell whether a request may still start under this grant."""
        return now.elapsed_since(self.mark) < self.valid_for


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """After `failures` in a row stay away for `cool_for`, then try once."""

    failures: int = 2
    cool_for: timedelta = timedelta(hours=1)
    trial_for: timedelta = timedelta(minutes=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """A time in which nobody was let through: by a breaker that was open, or a limit on hold."""

    what: Literal["breaker", "hold"]
    name: str
    since: datetime
    until: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker as people see it: closed, open or on trial."""

    site: str
    state: str
    failures: int
    until: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt of a job that failed, counted against its target or, without one, its kind."""

    subject: str
    kind: str
    job_id: str
    reason: str
    is_dead: bool
    """Whether the job is among the dead letters now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Streak:
    """Failures in a row: no job of the subject has gone well since the first of them."""

    subject: str
    kind: str
    job_id: str
    reason: str
    failures: int
    dead: int
    """How many of them were the last of their jobs."""
    began_at: datetime
    last_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """Something to tell: events of one key arrive in the order of their commits."""

    key: str
    kind: str
    body: Mapping[str, Any]
    destination: str
    id: str


class Standing(IntEnum):
    """How an event stands: one that a process stood still over is tried once more, alone."""

    GOOD = 0
    SUSPECT = 1
    """It was in hand when a process stood still: taken alone until it was tried."""
    SET_ASIDE = 2
    """It was alone in hand when a process stood still: never tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event taken for delivery; its id is the same over all attempts."""

    id: str
    key: str
    kind: str
    body: Mapping[str, Any]
    destination: str
    attempt: int
    token: int
    created_at: datetime
    standing: Standing = Standing.GOOD


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """An event that a process had in hand when its guard ended it, and how it stands now."""

    id: str
    kind: str
    standing: Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How an attempt ended: `delivered`, `failed` for good, or again at `retry_at`."""

    id: str
    token: int
    delivered: bool = False
    retry_at: datetime | None = None
    reason: str | None = None
    exchange: Exchange | None = None
    """What was said to and fro, where the destination tells."""


@dataclass(frozen=True, slots=True)
class Note:
    """A small record for people who look into the cache with tools of its own."""

    key: str
    fields: Mapping[str, str | int]
    ttl: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """Something nobody expected, and what it happened to.

    The `line` is for the log alone, which strikes out secrets, and so is the error's own message:
    both may quote what was read. All else may be told to anybody.
    """

    component: str
    message: str
    what: str
    line: Mapping[str, Any]
    about: Mapping[str, str | int | None] = field(default_factory=dict)
    error: BaseException | None = None
    level: Literal["warning", "error"] = "error"
