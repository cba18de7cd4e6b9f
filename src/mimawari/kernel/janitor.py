"""The janitor: clears up after the dead every five minutes and at the start."""

from dataclasses import asdict, dataclass
from datetime import timedelta

import structlog

from mimawari.errors import StoreDown
from mimawari.kernel import outcome
from mimawari.kernel.job import State, Want
from mimawari.kernel.ports import Clock, Reporter, Store
from mimawari.kernel.reporting import LOG, burial
from mimawari.kernel.rescue import rescue
from mimawari.kernel.sessions import KEPT_FOR
from mimawari.kernel.watch import Watches
from mimawari.text import format_duration

BATCH = 500

log = structlog.get_logger(component="janitor")


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things that are over are kept."""

    done: timedelta = timedelta(days=7)
    dead: timedelta = timedelta(days=90)
    events: timedelta = timedelta(days=30)


KEPT = Retention()


@dataclass(frozen=True, slots=True)
class Report:
    """What one round of the janitor did."""

    requeued: int
    buried: int
    unknown: int
    forgotten_jobs: int
    forgotten_events: int
    forgotten_values: int
    forgotten_pauses: int
    forgotten_sessions: int


class Janitor:
    """Rescues, buries and forgets."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        watches: Watches,
        *,
        every: timedelta = timedelta(minutes=5),
        retention: Retention = KEPT,
        reporter: Reporter = LOG,
    ) -> None:
        self._store = store
        self._clock = clock
        self._watches = watches
        self._every = every
        self._retention = retention
        self._reporter = reporter

    async def run(self) -> None:
        """Make rounds until cancelled."""
        while True:
            try:
                await self.tick()
            except StoreDown as error:
                log.warning("store down", result="retry", reason=str(error), next=str(self._every))
            await self._clock.sleep(self._every)

    async def tick(self) -> Report:
        """Make one round and say what it did."""
        now = self._clock.now()
        queue, keep = self._store.queue, self._retention
        rescued = await rescue(self._store, self._clock, self._watches, self._reporter)
        unknown = await self._bury_unknown()
        forgotten = await queue.purge(State.DONE, now - keep.done)
        for task in self._watches.tasks.values():
            if task.kept_for is not None and task.kept_for < keep.done:
                forgotten += await queue.purge(State.DONE, now - task.kept_for, task.kind)
        for state in (State.FAILED, State.PERMANENT_FAIL):
            forgotten += await queue.purge(state, now - keep.dead)
        await self._store.streaks.purge(now - keep.dead)
        report = Report(
            requeued=rescued.requeued,
            buried=rescued.buried,
            unknown=unknown,
            forgotten_jobs=forgotten,
            forgotten_events=await self._store.outbox.purge(now - keep.events),
            forgotten_values=await self._store.cache.purge(now),
            forgotten_pauses=await self._store.pauses.purge(now - keep.events),
            forgotten_sessions=await self._store.sessions.purge(now - KEPT_FOR),
        )
        every = format_duration(self._every)
        log.info("janitor made its round", result="done", next=every, **asdict(report))
        return report

    async def _bury_unknown(self) -> int:
        strangers = await self._store.queue.kinds() - self._watches.tasks.keys()
        wants = [Want(kind=kind, most=BATCH, lease_for=timedelta(minutes=1)) for kind in strangers]
        buried = 0
        while wants:
            claimed = (await self._store.queue.turn((), wants, "janitor")).jobs
            if not claimed:
                break
            await self._store.queue.turn([outcome.unknown(job) for job in claimed], (), "janitor")
            buried += len(claimed)
            for job in claimed:
                line = {"what": job.kind, "id": job.id, "reason": "unknown kind"}
                self._reporter.report(burial(job, "buried", line))
        return buried
