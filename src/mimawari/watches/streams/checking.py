"""One check of one stream: asks, reads, looks and decides; keeps nothing itself."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from mimawari.errors import Wait
from mimawari.sites.youtube import Answer, Trouble
from mimawari.text import one_line
from mimawari.watches.streams import resolution, rules
from mimawari.watches.streams.models import (
    EventType,
    Heard,
    Monitor,
    Notice,
    State,
    Stats,
    Status,
    Step,
    StreamStatus,
)
from mimawari.watches.streams.outside import Outside
from mimawari.watches.streams.resolution import Standing
from mimawari.watches.streams.segments import Read, read

_STREAM = {
    Standing.LIVE: StreamStatus.LIVE,
    Standing.UPCOMING: StreamStatus.UPCOMING,
    Standing.ENDED: StreamStatus.ENDED,
}


async def check(monitor: Monitor, state: State, outside: Outside) -> Step:
    """Look once at a stream, and say how it stands, what to tell and when to look again."""
    checking = _Checking(monitor, state, outside)
    if monitor.status is Status.MONITORING:
        return await checking.monitor()
    return await checking.wait()


class _Checking:
    """What one check has found so far."""

    def __init__(self, monitor: Monitor, state: State, outside: Outside) -> None:
        self._monitor = monitor
        self._config = monitor.config
        self._state = state
        self._outside = outside
        self._now = outside.now()
        self._status = monitor.status
        is_watched = monitor.status is Status.MONITORING
        self._stream = StreamStatus.LIVE if is_watched else StreamStatus.UNKNOWN
        self._answer = Answer(live_status=None)
        self._notices: list[Notice] = []
        self._stats = Stats()
        self._heard: tuple[Heard, ...] = ()

    async def wait(self) -> Step:
        """Ask whether the stream has begun; if so, look at it at once."""
        self._status = Status.WAITING
        if not resolution.may_ask(self._state.source, self._now):
            return self._held()
        standing = await self._ask()
        if standing is None:
            return self._held()
        if standing is Standing.LIVE and self._state.source.manifest_url is not None:
            self._begin()
            return await self._read()
        if standing in {Standing.ENDED, Standing.GONE}:
            return self._end(standing)
        return self._upcoming() if standing is Standing.UPCOMING else self._ask_later(standing)

    def _ask_later(self, standing: Standing) -> Step:
        if standing is Standing.LIVE:
            return self._again(self._now + rules.LATE_EVERY, "live, but without a playlist yet")
        if standing is Standing.ENDING:
            return self._again(self._now + rules.AGAIN_AFTER, "it seems over; asking once more")
        return self._again(*self._unanswered())

    async def monitor(self) -> Step:
        """Ask whether the stream is live still where that is due, and look at what is new."""
        if self._is_asked_for():
            standing = await self._ask()
            if standing in {Standing.ENDED, Standing.GONE}:
                return self._end(standing)
            if standing is not None:
                self._heed(standing)
        return await self._read()

    def _is_asked_for(self) -> bool:
        source, now = self._state.source, self._now
        is_due = source.ask_at is None or source.ask_at <= now
        is_lost = resolution.needs_address(source, now)
        return resolution.may_ask(source, now) and (is_due or is_lost or self._is_fault_due())

    def _is_fault_due(self) -> bool:
        fault = self._state.fault
        if fault is None or fault.is_told:
            return False
        return self._now - fault.since >= rules.FAULT_TOLD_AFTER

    async def _ask(self) -> Standing | None:
        """Ask how the stream stands; None if nobody may ask now."""
        answer = await self._outside.ask(self._monitor.stream_url)
        self._now = self._outside.now()
        if isinstance(answer, Wait):
            self._hold(answer.until, f"{answer.blocked_by}: {answer.reason}")
            return None
        source, standing = resolution.heed(self._state.source, answer, self._now)
        self._state = replace(self._state, source=source)
        self._stream = _STREAM.get(standing, self._stream)
        self._answer = answer
        return standing

    def _hold(self, until: datetime, words: str | None) -> None:
        source = replace(self._state.source, not_before=until, held_by=words)
        self._state = replace(self._state, source=source)

    def _heed(self, standing: Standing) -> None:
        """Decide what an answer means for a stream that is watched."""
        source = self._state.source
        if standing is Standing.ENDING:
            again_at = self._now + rules.AGAIN_AFTER
            source = replace(source, ask_at=again_at, not_before=again_at)
            self._state = replace(self._state, source=source)
        elif standing is not Standing.LIVE:
            self._hold(*self._unanswered())
        elif self._is_fault_due():
            self._tell_fault()

    def _unanswered(self) -> tuple[datetime, str]:
        trouble = self._answer.trouble or Trouble.UNKNOWN
        failures = max(self._state.source.failures, 1)
        words = f"{trouble}: {self._answer.words}" if self._answer.words else str(trouble)
        return self._now + rules.unanswered_for(trouble, failures), one_line(words, most=300)

    def _begin(self) -> None:
        self._status = Status.MONITORING
        self._state = replace(self._state, started_at=self._now)
        source, scheduled = self._state.source, self._config.scheduled_start_time
        data: dict[str, Any] = {"started_at": self._now, "title": source.title}
        if scheduled is not None:
            late = (self._now - scheduled).total_seconds()
            data |= {"scheduled_start_time": scheduled, "delay_sec": max(0, int(late))}
        self._tell(EventType.STARTED, data)

    def _upcoming(self) -> Step:
        due = rules.due_at(self._config, self._state.source.release_at)
        next_at, reason = rules.next_poll(self._now, due)
        late_at = rules.delay_told_at(self._config)
        if late_at is not None and not self._state.is_delay_told:
            if self._now >= late_at:
                self._tell_delay()
            else:
                next_at = min(next_at, late_at)
        return self._again(next_at, reason)

    def _tell_delay(self) -> None:
        scheduled = self._config.scheduled_start_time or self._now
        self._state = replace(self._state, is_delay_told=True)
        data = {
            "scheduled_start_time": scheduled,
            "delay_sec": int((self._now - scheduled).total_seconds()),
            "tolerance_sec": self._config.start_delay_tolerance_sec,
        }
        self._tell(EventType.DELAYED, data)

    def _tell_fault(self) -> None:
        fault = self._state.fault
        if fault is None:
            return
        self._state = replace(self._state, fault=replace(fault, is_told=True))
        data = {
            "reason": fault.what,
            "duration_sec": round((self._now - fault.since).total_seconds(), 3),
            "started_at": fault.since,
            "error_details": fault.words,
        }
        self._tell(EventType.SEGMENT_ERROR, data)

    def _end(self, standing: Standing) -> Step:
        if standing is Standing.GONE:
            trouble = self._answer.trouble or Trouble.UNKNOWN
            details = self._answer.words or str(trouble)
            data = {
                "reason": str(trouble),
                "previous_status": str(self._monitor.status),
                "error_details": details,
            }
            self._tell(EventType.ERROR, data)
            self._status = Status.ERROR
            return self._step(self._now, f"{trouble}: {details}")
        return self._over("not_live", "it is not live any more")

    def _over(self, reason: str, words: str) -> Step:
        self._stream, self._status = StreamStatus.ENDED, Status.COMPLETED
        self._tell(EventType.ENDED, {"reason": reason, "ended_at": self._now})
        return self._step(self._now, words)

    async def _read(self) -> Step:
        """Look at what is new in the playlist."""
        if self._state.source.manifest_url is None:
            return self._held()
        found: Read = await read(self._config, self._state, self._outside)
        self._state, self._stats = found.state, found.stats
        self._heard = found.heard
        self._notices += found.notices
        self._now = self._outside.now()
        if found.is_over:
            return self._over("endlist", "its playlist has come to its end")
        return self._step(self._soonest(found.next_at), found.reason)

    def _soonest(self, next_at: datetime) -> datetime:
        """Look earlier where it is to be asked earlier whether a stream is live still."""
        source, fault = self._state.source, self._state.fault
        times = [next_at]
        if source.ask_at is not None:
            times.append(max(source.ask_at, source.not_before or source.ask_at))
        if fault is not None and not fault.is_told:
            told_at = fault.since + rules.FAULT_TOLD_AFTER
            times.append(max(told_at, source.not_before or told_at))
        soon = self._now + rules.SECOND
        return max(min(times), min(next_at, soon))

    def _held(self) -> Step:
        """Wait for what keeps everybody from asking."""
        source = self._state.source
        reason = source.held_by or "a new address of its playlist is asked for soon"
        soon = self._now + rules.SECOND
        return self._step(max(source.not_before or soon, soon), reason)

    def _again(self, next_at: datetime, reason: str) -> Step:
        self._hold(next_at, reason)
        return self._step(next_at, reason)

    def _tell(self, what: EventType, data: dict[str, Any]) -> None:
        self._notices.append(Notice(type=what, at=self._now, data=data))

    def _step(self, next_at: datetime, reason: str) -> Step:
        return Step(
            status=self._status,
            stream_status=self._stream,
            state=self._state,
            next_at=next_at,
            reason=reason,
            notices=tuple(self._notices),
            stats=self._stats,
            heard=self._heard,
        )
