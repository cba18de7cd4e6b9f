"""Runs the monitors of a pod, which knows the gateway and no database."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import structlog
from structlog.contextvars import bind_contextvars

from mimawari.errors import BadInput, Forbidden, StoreDown, Wait
from mimawari.ids import new_id
from mimawari.kernel.context import Context
from mimawari.kernel.ports import Clock
from mimawari.net.gateway import Gateway
from mimawari.watches.streams import sync
from mimawari.watches.streams.checking import check
from mimawari.watches.streams.events import write_facts
from mimawari.watches.streams.models import Monitor, State, Stats, Status, Step
from mimawari.watches.streams.outside import CHECK, Web
from mimawari.watches.streams.state import parse_config, parse_state, write_state
from mimawari.watches.streams.tasks import tell_log

SHARED_EVERY, ALONE_EVERY = timedelta(seconds=5), timedelta(seconds=30)
"""How often a pod asks which monitors are its own; one may be given others by a new setting."""
AGAIN_AFTER = (1, 2, 5)
"""Seconds until a gateway that is away is asked again; then as long as the last each time."""
CHECK_SECONDS = 180
PATH = "/internal/v1/monitors"

OpenContext = Callable[[], Context]

log = structlog.get_logger(component="monitor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A monitor that a pod holds: how it stands, and the version by which it is heard."""

    monitor: Monitor
    state: State
    stats: Stats
    version: int
    zone: ZoneInfo


class PodWorker:
    """Runs monitors until they are over or it is told to stop."""

    def __init__(
        self, gateway: Gateway, clock: Clock, open_context: OpenContext, pod_name: str
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._open_context = open_context
        self._pod_name = pod_name
        self._stop = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._over: set[str] = set()
        """Monitors that have ended, or that another process has claimed since."""
        self.is_ready = False
        """Whether it holds, or has held, a monitor."""

    def stop(self) -> None:
        """Begin no check any more; what is under way is brought to its end."""
        self._stop.set()

    async def run(self, *, is_shared: bool) -> None:
        """Run all monitors that are given to this pod, until there are none."""
        every = SHARED_EVERY if is_shared else ALONE_EVERY
        while not self._stop.is_set():
            answer = await self._again(
                lambda: self._gateway.ask("GET", PATH, params={"pod": self._pod_name})
            )
            wanted = set(answer["monitors"]) if answer is not None else set()
            self._let_go(wanted)
            # Of two processes that claim one monitor the first must give way, and not claim again.
            wanted -= self._over
            if not wanted:
                break
            for monitor_id in wanted - self._running.keys():
                self._running[monitor_id] = asyncio.create_task(self._run(monitor_id))
            await self._rest(self._clock.now() + every, *self._running.values())
        self._stop.set()
        await asyncio.gather(*self._running.values(), return_exceptions=True)

    def _let_go(self, wanted: set[str]) -> None:
        for monitor_id, running in list(self._running.items()):
            if running.done():
                del self._running[monitor_id]
                self._over.add(monitor_id)
                if not running.cancelled():
                    # A bug ends the whole process, which is then started anew.
                    running.result()
            elif monitor_id not in wanted:
                running.cancel()

    async def _run(self, monitor_id: str) -> None:
        # This is a task of its own: whatever it logs, by whichever part, is about this monitor.
        bind_contextvars(monitor_id=monitor_id)
        held = await self._claim(monitor_id)
        failures = 0
        while held is not None and not self._stop.is_set():
            try:
                step = await self._check(held)
            except Wait as error:
                await self._rest(error.until)
                continue
            except Forbidden as error:
                # The monitor was ended meanwhile, and with it went every right.
                log.warning("let go", what=monitor_id, result=error.code, reason=str(error))
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, other monitors go on
                failures += 1
                await self._rest(self._note(held, error, failures))
                continue
            failures = 0
            held = await self._report(held, step)
            if held is not None:
                await self._rest(step.next_at)

    def _note(self, held: Held, error: Exception, failures: int) -> datetime:
        """Write down why a check came to nothing, and tell when to try again."""
        seconds = AGAIN_AFTER[min(failures, len(AGAIN_AFTER)) - 1]
        facts = {"monitor_id": held.monitor.id, "result": "retry", "next": f"{seconds}s"}
        if isinstance(error, StoreDown | TimeoutError):
            log.warning("check failed", **facts, reason=str(error) or "it took too long")
        else:
            log.error("check failed", **facts, reason=str(error), exc_info=error)
        return self._clock.now() + timedelta(seconds=seconds)

    async def _claim(self, monitor_id: str) -> Held | None:
        """Take a monitor; None if it is over, unknown or another's."""
        body = {"pod": self._pod_name}
        told = await self._again(
            lambda: self._gateway.ask("POST", f"{PATH}/{monitor_id}/claim", json=body)
        )
        if told is None:
            return None
        self.is_ready = True
        log.info("monitor claimed", monitor_id=monitor_id, result="held", version=told["version"])
        return _read_claim(told)

    async def _check(self, held: Held) -> Step:
        context = self._open_context()
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                leave = await context.limit(CHECK, caller=held.monitor.id)
                # What counts is how many looks begin; whoever dies in one must hold up no other for
                # as long as its leave would last.
                await context.store.limiter.settle(leave)
                step = await check(held.monitor, held.state, Web(context, held.monitor.id))
        finally:
            await context.settle()
        for site in context.sites:
            await context.store.breaker.worked(site)
        return step

    async def _report(self, held: Held, step: Step) -> Held | None:
        """Have a check kept, however often it must be said; None if the monitor is over."""
        total = Stats(
            segments=held.stats.segments + step.stats.segments,
            blackouts=held.stats.blackouts + step.stats.blackouts,
            silences=held.stats.silences + step.stats.silences,
        )
        body = _write_report(held, step, total)
        path = f"{PATH}/{held.monitor.id}/status"
        told = await self._again(lambda: self._gateway.ask("PUT", path, json=body))
        if told is None:
            return None
        monitor = replace(held.monitor, status=step.status)
        tell_log(monitor, step, held.zone)
        if step.is_end:
            return None
        return replace(
            held, monitor=monitor, state=step.state, stats=total, version=told["version"]
        )

    async def _again(self, ask: "Callable[[], Any]") -> Mapping[str, Any] | None:
        """Ask until there is an answer; None where it is that nothing is to be done."""
        tries = 0
        while True:
            try:
                answer: Mapping[str, Any] = await ask()
            except StoreDown as error:
                seconds = AGAIN_AFTER[min(tries, len(AGAIN_AFTER) - 1)]
                tries += 1
                log.warning("gateway away", result="retry", reason=str(error), next=f"{seconds}s")
                # Also while it stops: what was found must be told, for as long as there is time.
                await self._clock.sleep(timedelta(seconds=seconds))
            except BadInput as error:
                log.warning("let go", what=self._pod_name, result=error.code, reason=str(error))
                return None
            else:
                return answer

    async def _rest(self, until: datetime, *others: "asyncio.Task[None]") -> None:
        """Wait for a time, for the word to stop, or for the end of something."""
        waits = [
            asyncio.ensure_future(self._clock.sleep(until - self._clock.now())),
            asyncio.ensure_future(self._stop.wait()),
        ]
        try:
            await asyncio.wait([*waits, *others], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _read_claim(told: Mapping[str, Any]) -> Held:
    counted = told["statistics"]
    return Held(
        monitor=Monitor(
            id=told["monitor_id"],
            stream_url=told["stream_url"],
            callback_url=told["callback_url"],
            config=parse_config(told["config"]),
            metadata=told["metadata"],
            status=Status(told["status"]),
            created_at=datetime.fromisoformat(told["created_at"]),
        ),
        state=parse_state(told["state"]),
        stats=Stats(
            segments=counted["total_segments_analyzed"],
            blackouts=counted["blackout_events"],
            silences=counted["silence_events"],
        ),
        version=told["version"],
        zone=ZoneInfo(told["zone"]),
    )


def _write_report(held: Held, step: Step, total: Stats) -> Mapping[str, Any]:
    video, audio = sync.tell_health(step.state)
    notices = [
        {
            "type": str(one.type),
            "at": one.at.isoformat(),
            "data": write_facts(one.data, held.zone),
        }
        for one in step.notices
    ]
    return {
        "status": str(step.status),
        "health": {"video": video, "audio": audio},
        "statistics": {
            "total_segments_analyzed": total.segments,
            "blackout_events": total.blackouts,
            "silence_events": total.silences,
        },
        "check": {
            "version": held.version,
            "id": new_id(),
            "stream_status": str(step.stream_status),
            "state": write_state(step.state),
            "reason": step.reason[:1000],
            "notices": notices,
        },
    }
