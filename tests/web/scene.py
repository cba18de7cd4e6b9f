"""What pages are looked at with: monitors, jobs, events and targets, put in by the watches."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from mimawari.app.ops import System
from mimawari.kernel.exchange import Exchange
from mimawari.kernel.job import End, NewJob, State, Want
from mimawari.kernel.values import BreakerPolicy, Delivery
from mimawari.watches.books.jobs import add_job
from mimawari.watches.books.models import Search
from mimawari.watches.hot.franchises import add_ips
from mimawari.watches.hot.models import NewIp
from mimawari.watches.prices.models import Setting
from mimawari.watches.prices.products import add_product
from mimawari.watches.streams import actions, sync
from mimawari.watches.streams.models import (
    EventType,
    Heard,
    Monitor,
    Notice,
    Reading,
    Sense,
    Source,
    Stats,
    Status,
    Step,
    StreamStatus,
    Told,
)
from mimawari.watches.streams.models import State as MonitorState
from mimawari.watches.streams.schemas.requests import ConfigIn, MonitorIn
from tests.web.notified import notify_somebody

HOSTILE = '<script>alert(1)</script>" onload="x'
CALLBACK = "http://127.0.0.1:9/hook?token=letmein"
GIVEN: dict[str, Any] = {"webhook_key": "sign", "allow_hosts": ("127.0.0.1",)}
"""Settings under which monitors can be added."""
SAID = Exchange(
    address=CALLBACK,
    headers={"X-Event-Id": HOSTILE},
    body=f'{{"title": "{HOSTILE[:25]}"}}',
    status=500,
    answer=HOSTILE,
    took_for=timedelta(seconds=1),
)
PICTURE = "data:image/jpeg;base64,/9j/4AAQ"
MINUTE = timedelta(minutes=1)


def url_of(number: int) -> str:
    """Name a stream."""
    return f"https://www.youtube.com/watch?v=abcdefgh{number:03d}"


async def add_monitor(
    system: System, number: int = 1, *, callback: str = CALLBACK, **config: Any
) -> Monitor:
    """Add a monitor."""
    given = MonitorIn(
        stream_url=url_of(number),
        callback_url=callback,
        config=ConfigIn(**config),
        metadata={"note": HOSTILE},
    )
    return await actions.add(system, given, actions.Client(name="test", is_counted=False))


def notice(kind: EventType, at: datetime, **facts: Any) -> Notice:
    """Write something to tell."""
    return Notice(type=kind, at=at, data=facts)


async def keep(  # noqa: PLR0913 - a check finds many things
    system: System,
    monitor: Monitor,
    *notices: Notice,
    status: Status = Status.MONITORING,
    stream: StreamStatus = StreamStatus.LIVE,
    title: str = "Harbour",
    told: Sequence[Sense] = (),
    reason: str = "interval",
    heard: Sequence[Heard] = (),
) -> None:
    """Keep what a check of a monitor has found."""
    now = system.clock.now()
    state = MonitorState(
        source=Source(title=title),
        reading=Reading(sequence=5 if status is Status.MONITORING else None),
        told={sense: Told(started_at=now) for sense in told},
    )
    step = Step(
        status=status,
        stream_status=stream,
        state=state,
        next_at=now + MINUTE,
        reason=reason,
        notices=notices,
        stats=Stats(segments=40, blackouts=1),
        heard=tuple(heard),
    )
    async with system.store.edit() as tx:
        await sync.keep_step(tx, monitor, step, now, system.settings.zone)


async def end_jobs(system: System, *states: State, page: bytes | None = None) -> list[str]:
    """Put jobs and end each in a state; return their ids."""
    queue = system.store.queue
    kind = "rentals.detail"
    ids = await queue.put([NewJob(kind=kind, args={"note": HOSTILE}, priority=0) for _ in states])
    want = Want(kind=kind, most=len(states), lease_for=timedelta(minutes=5))
    jobs = (await queue.turn((), [want], "w")).jobs
    ends = [
        End(id=job.id, token=job.token, state=state, reason=f"ended {HOSTILE}", page=page)
        for job, state in zip(jobs, states, strict=True)
    ]
    await queue.turn(ends, (), "w")
    return ids


async def settle_events(
    system: System,
    *,
    delivered: bool,
    reason: str | None = None,
    exchange: Exchange | None = None,
) -> None:
    """Let the first event of every lane arrive, or give it up."""
    outbox = system.store.outbox
    taken = await outbox.take(system.clock.now(), 50, MINUTE)
    await outbox.settle(
        [
            Delivery(
                id=event.id,
                token=event.token,
                delivered=delivered,
                reason=reason,
                exchange=exchange,
            )
            for event in taken
        ]
    )


async def add_targets(system: System) -> None:
    """Add something to go round to for the watches that have targets."""
    now, settings = system.clock.now(), system.settings
    async with system.store.edit() as tx:
        await add_ips(tx, [NewIp(name=HOSTILE, keyword="kw")], settings, now)
        await add_product(tx, HOSTILE, Setting(keyword="kw"), settings, now)
        await add_job(tx, Search(name="books", queries=(HOSTILE,)), settings, now)


async def fill(system: System) -> None:
    """Put in monitors, jobs and events, with names that would run if they could."""
    now = system.clock.now()
    bad = await add_monitor(system, 1)
    await keep(
        system,
        bad,
        notice(EventType.STARTED, now, started_at=now, title=HOSTILE),
        notice(EventType.BLACKOUT, now, started_at=now, snapshot=PICTURE, note=HOSTILE),
        title=HOSTILE,
        told=(Sense.BLACKOUT,),
        heard=[Heard(at=now + timedelta(seconds=10 * n), lufs=-20.0 - n) for n in range(5)],
    )
    late = await add_monitor(system, 2, scheduled_start_time=now - MINUTE)
    await keep(system, late, status=Status.WAITING, stream=StreamStatus.UPCOMING)
    over = await add_monitor(system, 3)
    await keep(system, over, notice(EventType.STARTED, now), title=HOSTILE)
    await actions.stop(system, over.id)
    await end_jobs(system, State.FAILED, State.DONE, page=HOSTILE.encode())
    await notify_somebody(system)
    await settle_events(system, delivered=False, reason=f"no {HOSTILE}", exchange=SAID)
    for site in ("mercari", "yahoo_realestate"):
        for _ in range(2):
            await system.store.breaker.failed(site, BreakerPolicy(), f"403 {HOSTILE}")
    await system.store.limiter.hold("rentals.detail", now + MINUTE, f"later {HOSTILE}")
