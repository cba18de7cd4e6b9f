"""Routes over all IPs: the leaderboard, alerts, and how the watch stands."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response
from pydantic import BaseModel, Field

from mimawari.edges import csv_export, pagination, response_cache, site_status
from mimawari.edges.pagination import Listing
from mimawari.edges.routes import SystemOf
from mimawari.edges.site_status import WaitOut
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.kernel.job import State
from mimawari.sites import mercari
from mimawari.watches.hot import alerts as alerting
from mimawari.watches.hot import queries, rules, tasks
from mimawari.watches.hot.models import AlertKind
from mimawari.watches.hot.queries import Board, Ranked, Window
from mimawari.watches.hot.schemas.requests import AlertId, AlertsAsked, BoardAsked
from mimawari.watches.hot.schemas.responses import CoverageOut, WindowOut, columns_of, note_of

boards_router = APIRouter()
OURS = "hot."
MOST_DUE = 1000


class AlertOut(BaseModel):
    """Something worth telling about an IP."""

    id: int
    ip_id: int
    name: str
    kind: AlertKind
    level: str
    message: str
    value: float
    threshold: float
    samples: int
    is_open: bool
    opened_at: datetime
    closed_at: datetime | None
    acknowledged_at: datetime | None

    @classmethod
    def of(cls, row: Any) -> "AlertOut":
        """Show an alert."""
        plain = set(cls.model_fields) - {"is_open", "message"}
        kind = AlertKind(row.kind)
        return cls(
            **{field: getattr(row, field) for field in plain},
            is_open=row.open_key is not None,
            message=rules.describe(kind, row.value, row.threshold, row.samples),
        )


class AlertsOut(BaseModel):
    """A page of alerts, newest first."""

    alerts: list[AlertOut]
    next: int | None = Field(description="Give this as `before` for the next page.")


class RankedOut(BaseModel):
    """An IP's place on a leaderboard."""

    rank: int
    ip_id: int
    name: str
    name_en: str
    inflow: int
    outflow: int
    liquidity: float | None
    score: float
    previous_rank: int | None = Field(description="In as many hours before; null if not there.")
    coverage: CoverageOut
    note: str | None

    @classmethod
    def of(cls, one: Ranked) -> "RankedOut":
        """Show a place."""
        ip, site_status = one.ip, one.standing
        return cls(
            rank=one.rank,
            ip_id=ip.id,
            name=ip.name,
            name_en=ip.name_en,
            inflow=site_status.inflow,
            outflow=site_status.outflow,
            liquidity=site_status.liquidity,
            score=site_status.score,
            previous_rank=one.previous_rank,
            coverage=CoverageOut.of(ip.coverage),
            note=note_of(ip),
        )


class LeaderboardOut(BaseModel):
    """The IPs that were first in a window."""

    type: Board
    hours: int
    window: WindowOut
    generated_at: datetime
    entries: list[RankedOut]


class KindOut(BaseModel):
    """The jobs of a kind."""

    kind: str
    due: int = Field(description=f"Wait for a worker only; counted up to {MOST_DUE}.")
    pending: int
    processing: int
    failed: int = Field(description="Dead letters.")


class StatusOut(BaseModel):
    """How the watch stands."""

    ips: int
    active: int
    failing: int
    items: int
    open_alerts: int
    jobs: list[KindOut]
    next_at: datetime | None = Field(description="When something is due next.")
    breaker: WaitOut
    limit: WaitOut
    zone: str
    pages_on_sale: int
    pages_sold: int


@boards_router.get("/leaderboard", response_model=LeaderboardOut, responses=csv_export.CSV)
async def show_leaderboard(
    system: SystemOf, asked: Annotated[BoardAsked, Query()]
) -> LeaderboardOut | Response:
    """Rank IPs by whole hours, the current one left out."""
    now = system.clock.now()
    window = Window.before(now, asked.hours)

    async def make() -> LeaderboardOut:
        async with system.store.read() as reader:
            ranked = await queries.list_ranked(reader, asked.type, window, queries.MOST_RANKED)
        span = WindowOut(start_at=window.start_at, end_at=window.end_at)
        entries = [RankedOut.of(one) for one in ranked]
        return LeaderboardOut(
            type=asked.type, hours=asked.hours, window=span, generated_at=now, entries=entries
        )

    def fits(kept: LeaderboardOut) -> bool:
        return kept.window.end_at == window.end_at

    key = f"{queries.LEADERBOARD}{asked.type}:{asked.hours}"
    board = await response_cache.find_or_make(system.store.cache, key, LeaderboardOut, make, fits)
    shown = board.entries[: asked.limit]
    if asked.format == "csv":
        name = f"leaderboard-{asked.type}-{asked.hours}h"
        return await csv_export.download(name, columns_of(RankedOut), csv_export.one_piece(shown))
    return board.model_copy(update={"entries": shown})


@boards_router.get("/alerts", response_model=AlertsOut, responses=csv_export.CSV)
async def list_alerts(
    system: SystemOf, asked: Annotated[AlertsAsked, Query()]
) -> AlertsOut | Response:
    """List alerts, newest first."""
    is_open = {"open": True, "closed": False, "all": None}[asked.state]

    async def fetch(before: int | None, most: int) -> Sequence[AlertOut]:
        async with system.store.read() as reader:
            rows = await queries.list_alerts(
                reader, most, before=before, ip_id=asked.ip_id, is_open=is_open
            )
        return [AlertOut.of(row) for row in rows]

    listing = Listing(fetch=fetch, start=asked.before, place_of=lambda alert: alert.id)
    if asked.format == "csv":
        pieces = pagination.walk(listing, asked.limit)
        return await csv_export.download("alerts", columns_of(AlertOut), pieces)
    shown, more = await pagination.find_page(listing, asked.page)
    return AlertsOut(alerts=shown, next=shown[-1].id if more else None)


@boards_router.post("/alerts/{alert_id}/ack")
async def acknowledge(system: SystemOf, alert_id: AlertId) -> AlertOut:
    """Say that somebody has seen an alert; the first time counts."""
    async with system.store.edit() as tx:
        row = await alerting.acknowledge(tx, alert_id, system.clock.now())
    if row is None:
        raise NotFound(f"no alert goes by the id {alert_id}; GET /api/v1/alerts lists them")
    return AlertOut.of(row)


@boards_router.get("/system/status")
async def show_status(system: SystemOf) -> StatusOut:
    """Tell how the watch stands: what is kept, what is due, and what stands in the way."""
    async with system.store.read() as reader:
        counts = await queries.count_all(reader)
    others = [kind for kind in system.watches.tasks if not kind.startswith(OURS)]
    settings = system.settings
    return StatusOut(
        **counts,
        jobs=await _count_jobs(system),
        next_at=await system.store.schedule.next_at(without=others),
        breaker=await site_status.find_breaker(system, mercari.NAME),
        limit=await site_status.find_limit(system, tasks.LIMIT),
        zone=str(settings.zone),
        pages_on_sale=settings.hot_pages_on_sale,
        pages_sold=settings.hot_pages_sold,
    )


async def _count_jobs(system: System) -> list[KindOut]:
    queue = system.store.queue
    kinds = sorted(kind for kind in system.watches.tasks if kind.startswith(OURS))
    due = await queue.depths(kinds, MOST_DUE)

    counts = {kind: await queue.counts(kind) for kind in kinds}
    return [
        KindOut(
            kind=kind,
            due=due.get(kind, 0),
            pending=counts[kind].get(State.PENDING, 0),
            processing=counts[kind].get(State.PROCESSING, 0),
            failed=counts[kind].get(State.FAILED, 0),
        )
        for kind in kinds
    ]
