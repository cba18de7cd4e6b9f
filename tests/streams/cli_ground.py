"""The ground of the tests of the commands on monitors: a data folder with some in it."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import update

from mimawari.kernel.clock import RealClock
from mimawari.kernel.values import Entry
from mimawari.media.timeline import Run
from mimawari.store.sql import SqlStore
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import (
    Config,
    EventType,
    Fault,
    Monitor,
    Notice,
    Reading,
    Sense,
    Source,
    State,
    Stats,
    Status,
    Step,
    StreamStatus,
    Told,
)
from mimawari.watches.streams.outside import CHECK
from mimawari.watches.streams.runner import member_of
from mimawari.watches.streams.tables import events
from tests.ready import lay_tables

TOKYO = ZoneInfo("Asia/Tokyo")
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
DARK, AWAITED, LOST, ODD = (f"mon-0190a5c8e4{digit * 22}" for digit in "abcd")
CALLBACK = "http://127.0.0.1:9/hook"
VIDEO = "https://www.youtube.com/watch?v=AAAAAAAAAA{}"
VARIABLES = {
    "WEBHOOK_SIGNING_KEY": "a-key",
    "MIMAWARI_ALLOW_HOSTS": "127.0.0.1",
    "MIMAWARI_ZONE": "Asia/Tokyo",
}


def a_monitor(monitor_id: str, number: int, at: datetime, **config: Any) -> Monitor:
    """Make up a monitor."""
    return Monitor(
        id=monitor_id,
        stream_url=VIDEO.format(number),
        callback_url=CALLBACK,
        config=Config(**config),
        metadata={"channel": "見回り"},
        status=Status.INITIALIZING,
        created_at=at,
    )


def a_step(status: Status, stream: StreamStatus, now: datetime, **given: Any) -> Step:
    """Make up what a check found."""
    usual = {"state": State(), "next_at": now + 10 * SECOND, "reason": "interval"}
    return Step(status=status, stream_status=stream, **{**usual, **given})


async def keep(store: SqlStore, monitor: Monitor, step: Step, at: datetime) -> None:
    """Keep a monitor with what one check of it found."""
    async with store.edit() as tx:
        await sync.add(tx, monitor, "test")
        await sync.keep_step(tx, monitor, step, at, TOKYO)
        if not step.is_end:
            tx.place(
                Entry(
                    member=member_of(monitor.id), kind=CHECK, next_at=step.next_at,
                    every=10 * SECOND, args={"monitor_id": monitor.id}, reason=step.reason,
                )
            )  # fmt: skip


def tell(what: EventType, at: datetime, **data: Any) -> Notice:
    """Make up something to tell."""
    return Notice(type=what, at=at, data=data)


async def fill(data: Path) -> None:
    """Keep a stream that is black, one that is awaited, one that is gone and one named badly."""
    clock = RealClock()
    store = SqlStore(await lay_tables(data / "mimawari.db"), clock)
    now = clock.now()
    since = now - 2 * MINUTE
    state = State(
        source=Source(manifest_url="https://cdn.test/a.m3u8", title="くらげ水槽"),
        reading=Reading(sequence=7),
        runs={Sense.BLACKOUT: Run(start=0.0, until=90.0, seconds=90.0, is_told=True)},
        told={Sense.BLACKOUT: Told(started_at=since)},
    )
    started = tell(EventType.STARTED, now - 3 * MINUTE, title="くらげ水槽")
    black = tell(EventType.BLACKOUT, now - MINUTE, duration_sec=30.5, started_at=since)
    dark = a_step(
        Status.MONITORING, StreamStatus.LIVE, now, state=state, notices=(started, black),
        stats=Stats(segments=1234, blackouts=1), next_at=now + HOUR,
    )  # fmt: skip
    await keep(store, a_monitor(DARK, 1, now - HOUR), dark, now - MINUTE)
    wait = a_step(
        Status.WAITING, StreamStatus.UPCOMING, now, reason="it begins later",
        next_at=now + 10 * MINUTE, state=State(source=Source(release_at=now + 5 * HOUR)),
    )  # fmt: skip
    await keep(store, a_monitor(AWAITED, 2, now - HOUR, freeze_threshold_sec=60), wait, now)
    gone = tell(EventType.ERROR, now, reason="private", error_details="Private video")
    over = a_step(
        Status.ERROR, StreamStatus.UNKNOWN, now, reason="private: Private video", notices=(gone,)
    )
    await keep(store, a_monitor(LOST, 3, now - HOUR), over, now)
    fault = Fault(what="segment", since=since, count=9, words=HOSTILE, is_told=True)
    named = a_step(
        Status.MONITORING, StreamStatus.LIVE, now, reason=HOSTILE,
        state=replace(state, told={}, fault=fault, source=Source(title=HOSTILE)),
        notices=(tell(EventType.SEGMENT_ERROR, now, reason="segment", error_details=HOSTILE),),
    )  # fmt: skip
    await keep(store, a_monitor(ODD, 4, now - HOUR), named, now)
    async with store.edit() as tx:
        told = {"webhook_status": "sent", "webhook_attempts": 1, "sent_at": now}
        await tx.execute(update(events).where(events.c.monitor_id == DARK).values(told))
        failed = {"webhook_attempts": 4, "webhook_last_error": "the receiver answered 500"}
        values = {"webhook_status": "failed", **failed}
        await tx.execute(update(events).where(events.c.monitor_id == LOST).values(values))
    await store.close()
