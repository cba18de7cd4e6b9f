"""Somebody who was notified of something, for the tests of pages."""

from dataclasses import replace

from mimawari.edges.system import System
from mimawari.ids import new_id
from mimawari.net.notify import Exchange, Report, write_report
from mimawari.notify import queries, sync, targets
from mimawari.notify.models import Setting, Target, Told
from tests.web.ground import HOSTILE


async def notify_somebody(system: System, name: str = HOSTILE) -> Target:
    """Notify somebody of something, with what was in the way of it."""
    now = system.clock.now()
    body = {"name": HOSTILE, "before_yen": 2, "after_yen": 1, "property_id": HOSTILE, "url": ""}
    told = Told(
        id=new_id(), kind="rentals.rent_fell", watches=("rentals",), body=body, at=now
    )  # fmt: skip
    tried = Exchange(method="POST", url="https://x/***", sent=HOSTILE, status=500, answer=HOSTILE)
    report = Report(is_sent=False, error=HOSTILE, took_ms=12, exchanges=(tried,))
    async with system.store.edit() as tx:
        setting = Setting(url="json://127.0.0.1:9/secret-word", kinds=("rentals.rent_fell",))
        target = await targets.add_target(tx, name, setting, now)
        await sync.fan_out(tx, told, system.settings, now)
        [send] = await queries.list_sends(tx, target.id, 1)
        await sync.mark(tx, replace(send, attempts=1, reason=HOSTILE, report=write_report(report)))
    return target
