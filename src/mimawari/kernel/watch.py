"""What a watch is: its tasks, their limits, its targets and its edges, typed."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from mimawari.errors import BadInput
from mimawari.kernel.job import Args, Job
from mimawari.kernel.ports import Clock, Reader, Store
from mimawari.kernel.rights import PodRights
from mimawari.kernel.values import BreakerPolicy, Limit
from mimawari.settings import DEFAULTS, Settings
from mimawari.text import parse_duration, parse_durations

if TYPE_CHECKING:
    from mimawari.kernel.context import Context
    from mimawari.kernel.control import Control
    from mimawari.kernel.deliverer import Destination
    from mimawari.kernel.naming import Naming
    from mimawari.kernel.telling import Telling

T = TypeVar("T")
Run = Callable[[Job, "Context"], Awaitable[None]]

WORKER = "worker"
"""The part that runs jobs of which nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A kind of job: what runs it, for how long, how many at once, and when again."""

    kind: str
    run: Run
    lease_for: timedelta
    timeout_for: timedelta
    attempts: int
    backoff: tuple[timedelta, ...]
    concurrency: int
    site: str | None = None
    role: str = WORKER
    kept_for: timedelta | None = None
    """How long its jobs that went well are kept; None leaves that to the settings."""
    in_order: bool = False
    """Whether a job that waits for its turn keeps its place: first in, first out."""
    timeout_of: Callable[[Settings], timedelta] | None = None
    """Returns how long it may run by the settings, where they say so."""

    def by(self, settings: Settings) -> "Task":
        """Return the task as the settings have it."""
        if self.timeout_of is None:
            return self
        return replace(self, timeout_for=self.timeout_of(settings))

    def backoff_after(self, attempt: int) -> timedelta:
        """Tell how long to wait after an attempt that failed."""
        return self.backoff[min(attempt, len(self.backoff)) - 1]


def task(  # noqa: PLR0913 - a task's whole policy is read in one place
    kind: str,
    *,
    lease: str = "5m",
    timeout: str | None = None,
    attempts: int = 3,
    backoff: str = "5m 15m 1h 4h 12h",
    concurrency: int = 1,
    site: str | None = None,
    role: str = WORKER,
    kept: str | None = None,
    in_order: bool = False,
    timeout_of: Callable[[Settings], timedelta] | None = None,
) -> Callable[[Run], Task]:
    """Make a function the task of a kind."""

    def made(run: Run) -> Task:
        lease_for = parse_duration(lease)
        return Task(
            kind=kind,
            run=run,
            lease_for=lease_for,
            timeout_for=parse_duration(timeout) if timeout else lease_for * 4,
            attempts=attempts,
            backoff=parse_durations(backoff),
            concurrency=concurrency,
            site=site,
            role=role,
            kept_for=parse_duration(kept) if kept else None,
            in_order=in_order,
            timeout_of=timeout_of,
        )

    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Something a watch goes round to: the schedule is rebuilt from these."""

    member: str
    kind: str
    every: timedelta
    args: Args = field(default_factory=dict)
    last_run_at: datetime | None = None


Limits = tuple[Limit, ...] | Callable[[Settings], tuple[Limit, ...]]
"""What a watch may ask of its sites: always the same, or as the settings say."""

Started = Callable[[str, Settings], None]
"""Tells the log that a part (`worker`, `scheduler`) has started; what that means to a watch."""

Destinations = Callable[[Store, Clock, "Watches"], Mapping[str, "Destination"]]
"""Makes what delivers a watch's own events, by scheme."""

Targets = Callable[[Reader, Settings], Awaitable[Sequence[Target]]]

Opening = Callable[[Store, Clock, Settings], Awaitable[None]]
"""What is done once beside the start of a process that serves the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What a watch's routes owe to a description of their own, where the edge answers for them."""

    prefixes: tuple[str, ...]
    codes: Mapping[str, str]
    """Words for errors, by ours."""
    meanings: Mapping[int, str]
    """What its errors mean, by their status, beside those that the edge gives."""
    reads_a_minute: int
    """How often each client may look."""

    def covers(self, path: str) -> bool:
        """Say whether a path is one of these routes."""
        return any(path == one or path.startswith(f"{one}/") for one in self.prefixes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """A watch's manifest."""

    name: str
    tasks: tuple[Task, ...]
    limits: Limits = ()
    breakers: Mapping[str, BreakerPolicy] = field(default_factory=dict)
    targets: Targets | None = None
    naming: "tuple[Naming, ...]" = ()
    started: Started | None = None
    destinations: Destinations | None = None
    tables: Any = None
    router: str = ""
    """Where its routes are, as `module:name`: they are loaded only where an API is served."""
    internal_router: str = ""
    """Where the routes are that only this installation's own parts may use."""
    pod_rights: Callable[[Settings], PodRights] | None = None
    declared: str = ""
    """How its targets stand in a file of all, as `module:name`."""
    manners: Manners | None = None
    opening: Opening | None = None
    commands: Any = None
    controls: "tuple[Control, ...]" = ()
    """How to find out, of each site with items that may go, whether its 404s are true."""
    tellings: "tuple[Telling, ...]" = ()
    """The kinds of its events that people may be told."""


class Watches:
    """All watches together, found by kind, limit and site, and the settings they go by."""

    def __init__(self, watches: Iterable[Watch], settings: Settings = DEFAULTS) -> None:
        self.all = tuple(watches)
        self.settings = settings
        self.tasks = _unique(
            (task.kind, task.by(settings)) for watch in self.all for task in watch.tasks
        )
        self._limits = _unique(
            (limit.name, limit) for watch in self.all for limit in self._limits_by(watch)
        )
        self.tellings = _unique(
            (telling.kind, telling) for watch in self.all for telling in watch.tellings
        )
        self._controls = _unique((one.site, one) for watch in self.all for one in watch.controls)
        self._breakers = _unique(item for watch in self.all for item in watch.breakers.items())

    def _limits_by(self, watch: Watch) -> tuple[Limit, ...]:
        return watch.limits(self.settings) if callable(watch.limits) else watch.limits

    def tell_started(self, part: str) -> None:
        """Let every watch tell the log that a part has started."""
        for watch in self.all:
            if watch.started is not None:
                watch.started(part, self.settings)

    def open_destinations(self, store: Store, clock: Clock) -> "Mapping[str, Destination]":
        """Make what delivers the watches' own events, by scheme."""
        opened = (
            watch.destinations(store, clock, self)
            for watch in self.all
            if watch.destinations is not None
        )
        return _unique(item for found in opened for item in found.items())

    @property
    def limits(self) -> tuple[Limit, ...]:
        """All limits, as the settings have them."""
        return tuple(self._limits.values())

    def limit(self, name: str) -> Limit:
        """Find a limit by its name."""
        if name not in self._limits:
            raise BadInput(f"no watch declares a limit {name!r}")
        return self._limits[name]

    def breaker(self, site: str) -> BreakerPolicy:
        """Tell how patient to be with a site."""
        return self._breakers.get(site, BreakerPolicy())

    def control(self, site: str) -> "Control | None":
        """Find how to check a site's 404s; None if its pages cannot go."""
        return self._controls.get(site)

    @property
    def pod_rights(self) -> tuple[PodRights, ...]:
        """The rights of the pods of every watch that has some."""
        found = (watch.pod_rights for watch in self.all)
        return tuple(make(self.settings) for make in found if make is not None)

    def limits_of(self, kind: str) -> tuple[Limit, ...]:
        """List the limits that jobs of a kind may wait for: those that carry its name."""
        return tuple(limit for name, limit in self._limits.items() if name == kind)


def _unique(items: Iterable[tuple[str, T]]) -> dict[str, T]:
    found: dict[str, T] = {}
    for name, value in items:
        if name in found:
            raise BadInput(f"two watches declare {name!r}")
        found[name] = value
    return found
