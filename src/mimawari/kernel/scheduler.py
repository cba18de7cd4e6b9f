"""The scheduler: sleeps until just before the next due time and only enqueues."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from itertools import count

import structlog

from mimawari.kernel.job import NewJob
from mimawari.kernel.loop import AGAIN, LONGEST, tick_for_ever
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.signal import SCHEDULE
from mimawari.kernel.values import Entry, Move
from mimawari.kernel.watch import Target, Watches

AHEAD = timedelta(milliseconds=500)
"""Jobs are enqueued up to this long before their time: a waiting worker starts them on it."""

log = structlog.get_logger(component="scheduler")


def spread(targets: Sequence[Target], now: datetime) -> list[Entry]:
    """Place targets on an empty schedule: each at its own time, the overdue ones spread out."""
    late = sum(_own_time(target, now) is None for target in targets)
    placed = count()
    entries = []
    for target in targets:
        at, reason = _own_time(target, now), "interval"
        if at is None:
            at = now + target.every * next(placed) / late
            reason = "first run, spread out" if target.last_run_at is None else "overdue"
        entries.append(
            Entry(
                member=target.member,
                kind=target.kind,
                args=target.args,
                next_at=at,
                every=target.every,
                reason=reason,
            )
        )
    return entries


def _own_time(target: Target, now: datetime) -> datetime | None:
    """Tell when a target is due by its last run; None if it never ran or is overdue."""
    if target.last_run_at is None or target.last_run_at + target.every <= now:
        return None
    return target.last_run_at + target.every


def _following(entry: Entry, now: datetime) -> datetime:
    """Tell the time after a due one; intervals that were missed are not made up for."""
    following = entry.next_at + entry.every
    return following if following > now else now + entry.every


class Scheduler:
    """Turns due members into jobs, each once, whoever else does the same."""

    def __init__(
        self, store: Store, clock: Clock, watches: Watches, *, batch: int = 50, deepest: int = 25
    ) -> None:
        self._store = store
        self._clock = clock
        self._watches = watches
        self._batch = batch
        self._deepest = deepest
        self._bell = store.signal.bell(SCHEDULE)
        self._check_at = clock.now()

    async def run(self) -> None:
        """Enqueue until cancelled."""
        log.info("scheduler started", batch=self._batch, deepest=self._deepest)
        self._watches.tell_started("scheduler")
        await tick_for_ever(self.tick, self._bell, self._clock, log)

    async def tick(self) -> datetime:
        """Enqueue what is about to be due and tell when to come again."""
        now = self._clock.now()
        deep: frozenset[str] = frozenset()
        due = await self._store.schedule.due(now + AHEAD, self._batch)
        while more := await self._deep({entry.kind for entry in due}):
            deep |= more
            due = await self._store.schedule.due(now + AHEAD, self._batch, without=deep)
        if due:
            await self._enqueue(due, now)
        next_at = await self._store.schedule.next_at(without=deep)
        is_empty = next_at is None and not deep
        if is_empty or now >= self._check_at:
            self._check_at = now + LONGEST
            if await self._rebuild():
                next_at = await self._store.schedule.next_at(without=deep)
        hold = now + (AGAIN if deep else LONGEST)
        # Coming at half the span finds several at once where targets are close together.
        return hold if next_at is None else min(hold, next_at - AHEAD / 2)

    async def _deep(self, kinds: Collection[str]) -> frozenset[str]:
        depths = await self._store.queue.depths(kinds, self._deepest + 1)
        deep = frozenset(kind for kind, depth in depths.items() if depth > self._deepest)
        if deep:
            log.info("holding", kinds=sorted(deep), reason=f"queue deeper than {self._deepest}")
        return deep

    async def _enqueue(self, due: Sequence[Entry], now: datetime) -> None:
        moves = [
            Move(
                member=entry.member,
                seen_at=entry.next_at,
                next_at=_following(entry, now),
                job=NewJob(
                    kind=entry.kind,
                    args=entry.args,
                    dedupe_key=entry.member,
                    target=entry.member,
                    run_at=entry.next_at,
                ),
                reason="interval",
            )
            for entry in due
        ]
        enqueued = await self._store.schedule.advance(moves)
        log.info("enqueued", result="done", due=len(due), enqueued=enqueued)

    async def _rebuild(self) -> int:
        """Fill what the schedule has lost from the watches' own tables; return how many targets.

        A kind of targets is lost where its watch has some and the schedule has none of them.
        """
        there = await self._store.schedule.kinds()
        lost: list[Target] = []
        async with self._store.read() as reader:
            for watch in self._watches.all:
                if watch.targets is None or {task.kind for task in watch.tasks} <= there:
                    continue
                found = await watch.targets(reader, self._watches.settings)
                lost += [target for target in found if target.kind not in there]
        if not lost:
            return 0
        added = await self._store.schedule.add(spread(lost, self._clock.now()))
        kinds = ", ".join(sorted({target.kind for target in lost}))
        reason = f"there was none of {kinds}"
        log.info("schedule rebuilt", result="done", members=added, reason=reason)
        return added
