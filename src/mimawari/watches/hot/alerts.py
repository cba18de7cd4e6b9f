"""Opens and closes alerts: one open for each kind and IP."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import insert, select, update

from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import tell
from mimawari.watches.hot import rules
from mimawari.watches.hot.models import LEVELS, AlertKind, Finding, Ip
from mimawari.watches.hot.tables import alerts, ips


async def sync_alerts(tx: Tx, ip: Ip, findings: Sequence[Finding], now: datetime) -> None:
    """Open what is new, close what is over, and tell of both once."""
    query = select(alerts).where(alerts.c.ip_id == ip.id, alerts.c.open_key.is_not(None))
    is_open = {AlertKind(row.kind): row for row in await tx.execute(query)}
    holding = {finding.kind: finding for finding in findings}
    for kind, finding in holding.items():
        if kind not in is_open:
            await _open(tx, ip, finding, now)
    for kind, row in is_open.items():
        if kind not in holding:
            over = {"closed_at": now, "open_key": None}
            await tx.execute(update(alerts).where(alerts.c.id == row.id).values(over))
            _tell(tx, ip, "hot.alert_closed", row, now)


async def acknowledge(tx: Tx, alert_id: int, now: datetime) -> Any:
    """Keep when an alert was first acknowledged; return it, or None if there is none."""
    unseen = (alerts.c.id == alert_id) & alerts.c.acknowledged_at.is_(None)
    await tx.execute(update(alerts).where(unseen).values(acknowledged_at=now))
    query = select(alerts, ips.c.name).join(ips, ips.c.id == alerts.c.ip_id)
    return (await tx.execute(query.where(alerts.c.id == alert_id))).first()


async def _open(tx: Tx, ip: Ip, finding: Finding, now: datetime) -> None:
    values: dict[str, Any] = {
        "ip_id": ip.id,
        "kind": finding.kind,
        "level": LEVELS[finding.kind],
        "value": finding.value,
        "threshold": finding.threshold,
        "samples": finding.samples,
        "opened_at": now,
        "open_key": f"{ip.id}:{finding.kind}",
    }
    await tx.execute(insert(alerts).values(values))
    _tell(tx, ip, "hot.alert_opened", finding, now)


def _tell(tx: Tx, ip: Ip, event: str, found: Any, now: datetime) -> None:
    kind = AlertKind(found.kind)
    body = {
        "ip_id": ip.id,
        "name": ip.name,
        "kind": kind,
        "level": LEVELS[kind],
        "message": rules.describe(kind, found.value, found.threshold, found.samples),
        "at": now.isoformat(),
    }
    tell(tx, f"hot:{ip.id}", event, body)
