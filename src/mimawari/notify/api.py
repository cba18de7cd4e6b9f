"""Routes of notifications: targets, what may be told, what was sent, and a test that is real."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, Field

from mimawari.edges.request_fields import Asked, Id, Most
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.log import hide_secrets
from mimawari.net.notify import Report, read_report
from mimawari.notify import deliveries, queries, targets
from mimawari.notify.models import Send, Setting, Target
from mimawari.notify.schemas import TargetIn, TargetPatch, write_setting

router = APIRouter(prefix="/api/notify")
TargetId = Annotated[Id, Path(description="A target's id.")]


class TargetOut(BaseModel):
    """Whom we notify; its address without what only its owner may know."""

    id: int
    name: str
    url: str
    watches: list[str]
    kinds: list[str]
    how: str
    span: str
    daily_at: str
    language: str
    enabled: bool
    changed_at: datetime

    @classmethod
    def of(cls, target: Target) -> "TargetOut":
        """Show a target."""
        shown = {**write_setting(target.setting), "url": hide_secrets(target.setting.url)}
        return cls(id=target.id, name=target.name, changed_at=target.changed_at, **shown)


class TargetsOut(BaseModel):
    """All targets, by name."""

    targets: list[TargetOut]


class KindOut(BaseModel):
    """A kind of event that may be told."""

    kind: str
    watch: str
    ja: str
    en: str


class KindsOut(BaseModel):
    """All that may be told."""

    kinds: list[KindOut]


class ExchangeOut(BaseModel):
    """One request and its answer, with secrets struck out."""

    method: str
    url: str
    sent: str
    status: int | None
    answer: str
    error: str


class ReportOut(BaseModel):
    """What really happened."""

    is_sent: bool
    error: str
    took_ms: int
    exchanges: list[ExchangeOut]

    @classmethod
    def of(cls, report: Report) -> "ReportOut":
        """Show a report."""
        return cls.model_validate(report, from_attributes=True)


class TestOut(ReportOut):
    """What was sent as a test, and what really happened."""

    title: str
    body: str


class SendOut(BaseModel):
    """A message to a target."""

    id: str
    events: int
    state: str
    attempts: int
    reason: str | None
    report: ReportOut | None
    created_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, send: Send) -> "SendOut":
        """Show a message."""
        report = read_report(send.report)
        names = [name for name in cls.model_fields if name != "report"]
        said: dict[str, Any] = {name: getattr(send, name) for name in names}
        return cls(**said, report=ReportOut.of(report) if report else None)


class SendsOut(BaseModel):
    """A page of messages, newest first."""

    sends: list[SendOut]
    next: str | None = Field(description="Give this as `before` for the next page.")


class SendsAsked(Asked):
    """Which messages."""

    before: Annotated[str | None, Field(pattern="^[0-9a-f-]{36}$")] = None
    limit: Most = 50


def check(system: System, setting: Setting) -> None:
    """Refuse a choice of what nobody tells."""
    names = frozenset(watch.name for watch in system.watches.all)
    targets.check_choice(setting, system.watches.tellings, names)


@router.get("/kinds")
async def list_kinds(system: SystemOf) -> KindsOut:
    """List the kinds of events that may be told."""
    found = system.watches.tellings.values()
    return KindsOut(
        kinds=[KindOut(kind=one.kind, watch=one.watch, ja=one.ja, en=one.en) for one in found]
    )


@router.get("/targets")
async def list_targets(system: SystemOf) -> TargetsOut:
    """List whom we notify."""
    async with system.store.read() as reader:
        found = await queries.list_targets(reader)
    return TargetsOut(targets=[TargetOut.of(one) for one in found])


@router.post("/targets", status_code=201)
async def add_target(system: SystemOf, given: TargetIn) -> TargetOut:
    """Notify one more target, from now on."""
    setting = given.to_setting()
    check(system, setting)
    async with system.store.edit() as tx:
        return TargetOut.of(await targets.add_target(tx, given.name, setting, system.clock.now()))


async def _find(system: System, target_id: int) -> Target:
    async with system.store.read() as reader:
        return await queries.find_target(reader, target_id)


@router.get("/targets/{target_id}")
async def show_target(system: SystemOf, target_id: TargetId) -> TargetOut:
    """Show a target."""
    return TargetOut.of(await _find(system, target_id))


@router.patch("/targets/{target_id}")
async def change_target(system: SystemOf, target_id: TargetId, given: TargetPatch) -> TargetOut:
    """Change what is named of a target."""
    async with system.store.edit() as tx:
        known = await queries.find_target(tx, target_id)
        name, setting = given.change(known)
        check(system, setting)
        return TargetOut.of(
            await targets.change_target(tx, known, name, setting, system.clock.now())
        )


@router.delete("/targets/{target_id}", status_code=204)
async def remove_target(system: SystemOf, target_id: TargetId) -> None:
    """Notify a target no more, and forget what it was told."""
    async with system.store.edit() as tx:
        known = await queries.find_target(tx, target_id)
        await targets.remove_target(tx, known, system.clock.now())


@router.post("/targets/{target_id}/test")
async def test_target(system: SystemOf, target_id: TargetId) -> TestOut:
    """Really send a target the last event of its choice, and tell what happened."""
    target = await _find(system, target_id)
    message, report = await deliveries.send_test(
        system.store, system.clock, system.settings, system.watches.tellings, target.setting
    )
    shown = ReportOut.of(report).model_dump()
    return TestOut(title=message.title, body=message.body, **shown)


@router.get("/targets/{target_id}/sends")
async def list_sends(
    system: SystemOf, target_id: TargetId, given: Annotated[SendsAsked, Query()]
) -> SendsOut:
    """List what was sent to a target, newest first."""
    await _find(system, target_id)
    async with system.store.read() as reader:
        found = await queries.list_sends(reader, target_id, given.limit + 1, given.before)
    shown = found[: given.limit]
    following = shown[-1].id if len(found) > given.limit else None
    return SendsOut(sends=[SendOut.of(one) for one in shown], next=following)
