"""The values that the ports speak of, frozen."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from mimawari.kernel.clock import Mark
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
    """At most `count` requests in any `per`, one each `per / count`."""

    name: str
    count: int
    per: timedelta

    @property
    def spacing(self) -> timedelta:
        """The least time between two grants."""
        return self.per / self.count


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


@dataclass(frozen=True, slots=True)
class BreakerView:
    """A breaker as people see it: closed, open or on trial."""

    site: str
    state: str
    failures: int
    until: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """Something to tell: events of one key arrive in the order of their commits."""

    key: str
    kind: str
    body: Mapping[str, Any]
    destination: str
    id: str


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """How an attempt ended: `delivered`, `failed` for good, or again at `retry_at`."""

    id: str
    token: int
    delivered: bool = False
    retry_at: datetime | None = None
    reason: str | None = None


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
