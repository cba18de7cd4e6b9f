"""Brings events to those who asked for them: fanned out once, then sent target by target."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from sqlalchemy.exc import IntegrityError

from mimawari.errors import Gone, Transient
from mimawari.ids import new_id
from mimawari.kernel.deliverer import BACKOFF, LogDestination
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.telling import Telling
from mimawari.kernel.values import Event
from mimawari.net.notify import Message, Report, send, write_report
from mimawari.notify import queries, sync
from mimawari.notify.messages import write_message
from mimawari.notify.models import Send, SendState, Setting, Target, Told
from mimawari.settings import Settings
from mimawari.text import one_line

AT_ONCE = 4
"""So many messages are on their way at the same time: each takes a process of its own."""
PATIENCE = timedelta(seconds=15)
AGAIN = timedelta(seconds=5)


class TellDestination:
    """Takes what watches tell people: into the log, and down for every target that is told it."""

    def __init__(self, store: Store, clock: Clock, settings: Settings) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._log = LogDestination()

    async def deliver(self, event: Event) -> None:
        """Fan an event out in one commit; whoever does it again changes nothing."""
        told = Told(
            id=event.id,
            kind=event.kind,
            watches=(event.kind.partition(".")[0],),
            body=event.body,
            at=event.created_at,
        )
        try:
            async with self._store.edit() as tx:
                is_new = await sync.fan_out(tx, told, self._settings, self._clock.now())
        except IntegrityError as error:
            # The same event in another process, or a target that goes at this moment.
            raise Transient("something else was changed at the same moment") from error
        if is_new:
            await self._log.deliver(event)


class NotifyDestination:
    """Sends each target its messages, in their order."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        tellings: "Mapping[str, Telling]",
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._tellings = tellings
        self._room = asyncio.Semaphore(AT_ONCE)

    async def deliver(self, event: Event) -> None:
        """Send a message, unless that was done before; raise what was in the way."""
        async with self._store.read() as reader:
            found = await queries.find_send(reader, str(event.body.get("send_id")))
            if found is None:
                raise Gone("its target was removed")
            if found.state is not SendState.PENDING:
                return
            target = await queries.find_target(reader, found.target_id)
            told = await queries.list_told(reader, found.id)
        found = replace(found, attempts=event.attempt)
        if not target.setting.enabled:
            await self._end(found, SendState.FAILED, "its target is switched off")
            raise Gone("its target is switched off")
        language = target.setting.language
        message = write_message(found.id, language, told, self._tellings, self._settings)
        await self._record(found, await self._send(target, message))

    async def give_up(self, event: Event, reason: str) -> None:
        """Record that a message is not sent, and why."""
        async with self._store.read() as reader:
            found = await queries.find_send(reader, str(event.body.get("send_id")))
        if found is not None and found.state is SendState.PENDING:
            await self._end(replace(found, attempts=event.attempt), SendState.FAILED, reason)

    async def _send(self, target: Target, message: Message) -> Report:
        try:
            async with asyncio.timeout(PATIENCE.total_seconds()):
                await self._room.acquire()
        except TimeoutError as error:
            until = self._clock.now() + AGAIN
            raise Transient("waits for other messages to be sent", until=until) from error
        try:
            return await send(target.setting.url, message, self._settings, self._clock)
        finally:
            self._room.release()

    async def _record(self, found: Send, report: Report) -> None:
        kept = replace(found, report=write_report(report))
        if report.is_sent:
            await self._end(kept, SendState.SENT, None)
            return
        reason = one_line(report.error)
        is_last = found.attempts > len(BACKOFF)
        await self._end(kept, SendState.FAILED if is_last else SendState.PENDING, reason)
        raise Transient(reason)

    async def _end(self, found: Send, state: SendState, reason: str | None) -> None:
        ended_at = None if state is SendState.PENDING else self._clock.now()
        async with self._store.edit() as tx:
            await sync.mark(tx, replace(found, state=state, reason=reason, ended_at=ended_at))


async def send_test(
    store: Store,
    clock: Clock,
    settings: Settings,
    tellings: "Mapping[str, Telling]",
    setting: Setting,
) -> tuple[Message, Report]:
    """Really send the last event of a target's choice, and tell what happened."""
    async with store.read() as reader:
        last = await queries.find_last(reader, setting)
    told = [] if last is None else [last]
    message = write_message(new_id(), setting.language, told, tellings, settings)
    return message, await send(setting.url, message, settings, clock)
