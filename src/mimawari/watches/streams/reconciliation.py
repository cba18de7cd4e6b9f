"""At a start, compares what is to be monitored with what runs, and puts right what differs."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from typing import TypeVar

import structlog
from sqlalchemy import select

from mimawari.errors import StoreDown, Transient
from mimawari.kernel.ports import Clock, Store
from mimawari.settings import Settings
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import ACTIVE, EventType, Monitor, Notice
from mimawari.watches.streams.runner import Runner
from mimawari.watches.streams.runners import stop_in
from mimawari.watches.streams.tables import monitors

T = TypeVar("T")

TRIES = 5
FIRST_WAIT = timedelta(milliseconds=500)
TELL_FOR = timedelta(seconds=5)

log = structlog.get_logger(component="reconciler")


@dataclass(slots=True)
class Report:
    """What a comparison found and did, as far as it came."""

    active: int = 0
    running: int = 0
    missing: list[str] = field(default_factory=list)
    """Was to be monitored, but nothing ran."""
    zombies: list[str] = field(default_factory=list)
    """Ran though it was ended."""
    orphans: list[str] = field(default_factory=list)
    """Ran though nobody knows of it."""
    skipped: list[str] = field(default_factory=list)
    """Could not be put right this time."""
    timed_out: bool = False


class Reconciler:
    """Compares the monitors that are kept with those that a runner runs."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        runner: Runner,
        *,
        title: str = "Startup Reconciliation Report",
    ) -> None:
        self._title = title
        self._store = store
        self._clock = clock
        self._settings = settings
        self._runner = runner
        self._report = Report()
        self._waiting: dict[str, Monitor] = {}

    async def run(self) -> Report:
        """Compare and put right, in the time there is; tell what was found and done."""
        report = self._report
        try:
            async with asyncio.timeout(self._settings.streams_reconcile_for.total_seconds()):
                await self._compare()
        except TimeoutError:
            report.timed_out = True
            await self._tell_timeout()
        except (StoreDown, Transient) as error:
            report.skipped.append(f"all: {error}")
        except Exception as error:
            report.skipped.append(f"all: {type(error).__name__}: {error}")
            log.exception("reconciliation failed", what="reconcile", result="skipped")
        result = "timeout" if report.timed_out else "done"
        log.info(self._title, what="reconcile", result=result, **asdict(report))
        return report

    async def _compare(self) -> None:
        # In this order a monitor that is added meanwhile is never taken for one that is missing.
        active = await self._again(self._list_active)
        self._report.active, self._waiting = len(active), dict(active)
        running = await self._again(self._runner.list)
        self._report.running = len(running)
        for monitor_id, monitor in active.items():
            if monitor_id not in running:
                await self._try(monitor_id, partial(self._end_missing, monitor))
            self._waiting.pop(monitor_id, None)
        for monitor_id in sorted(running - active.keys()):
            await self._try(monitor_id, partial(self._remove, monitor_id))

    async def _list_active(self) -> dict[str, Monitor]:
        query = select(monitors).where(monitors.c.status.in_(ACTIVE)).order_by(monitors.c.id)
        async with self._store.read() as reader:
            rows = (await reader.execute(query)).all()
        return {row.id: sync.make_monitor(row) for row in rows}

    async def _end_missing(self, monitor: Monitor) -> None:
        if await end_missing(self._store, self._clock, self._settings, self._runner, monitor):
            self._report.missing.append(monitor.id)

    async def _remove(self, monitor_id: str) -> None:
        query = select(monitors.c.status).where(monitors.c.id == monitor_id)
        async with self._store.read() as reader:
            status = (await reader.execute(query)).scalar()
        if status in ACTIVE:
            # It was added since we looked.
            return
        await self._runner.remove(monitor_id)
        (self._report.orphans if status is None else self._report.zombies).append(monitor_id)

    async def _try(self, monitor_id: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._again(work)
        except (StoreDown, Transient) as error:
            self._report.skipped.append(monitor_id)
            log.warning("not put right", monitor_id=monitor_id, result="skipped", reason=str(error))

    async def _again(self, work: Callable[[], Awaitable[T]]) -> T:
        """Try again after longer and longer waits what may work later."""
        wait_for = FIRST_WAIT
        for _ in range(TRIES - 1):
            try:
                return await work()
            except (StoreDown, Transient):
                await self._clock.sleep(wait_for)
                wait_for *= 2
        return await work()

    async def _tell_timeout(self) -> None:
        """Tell of the monitors that nothing was found out about; they go on."""
        now = self._clock.now()
        try:
            async with asyncio.timeout(TELL_FOR.total_seconds()), self._store.edit() as tx:
                for monitor in self._waiting.values():
                    data = {
                        "reason": "reconciliation_timeout",
                        "previous_status": str(monitor.status),
                        "error_details": "a start could not find out in time whether it runs",
                    }
                    notice = Notice(type=EventType.ERROR, at=now, data=data)
                    await sync.tell(tx, monitor, [notice], self._settings.zone)
        except (TimeoutError, StoreDown) as error:
            log.warning("not told", what="reconcile", result="skipped", reason=str(error))


async def end_missing(
    store: Store, clock: Clock, settings: Settings, runner: Runner, monitor: Monitor
) -> bool:
    """End a monitor that nothing runs, and tell of it; say whether it was so, and ours to do."""
    observed = await runner.observe(monitor.id)
    if observed is None:
        return False
    data = {
        "reason": "reconciliation_mismatch",
        "reconciliation_action": observed.action,
        "previous_status": str(monitor.status),
        "observed_state": {**observed.state, "db_status": str(monitor.status)},
        "error_details": observed.details,
    }
    notice = Notice(type=EventType.ERROR, at=clock.now(), data=data)
    async with store.edit() as tx:
        is_ours = await sync.end_as(tx, monitor, notice, observed.words, settings.zone)
        if is_ours:
            await stop_in(tx, monitor.id, settings)
    return is_ours
