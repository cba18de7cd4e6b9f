"""What is done by the clock: gather what waits to be told, and look for incidents."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select, update

from mimawari.ids import new_id
from mimawari.kernel.context import Context
from mimawari.kernel.incidents import Incident, list_incidents, name_of
from mimawari.kernel.job import Job
from mimawari.kernel.naming import find_names
from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import Facts
from mimawari.kernel.watch import Watches, task
from mimawari.notify import rules, sync
from mimawari.notify.incidents import BEGAN, OVER, REMINDED, facts_of, watches_of
from mimawari.notify.models import Told
from mimawari.notify.tables import incidents
from mimawari.notify.targets import LOOK
from mimawari.settings import Settings


@task(sync.GATHER, lease="1m", attempts=20, backoff="5s 1m 5m", concurrency=4)
async def gather(job: Job, ctx: Context) -> None:
    """Tell a target all that waits for it, in one message."""
    async with ctx.commit(job) as tx:
        await sync.gather(tx, int(job.args["target_id"]), ctx.clock.now())


@task(LOOK, lease="1m", attempts=3, backoff="1m", kept="1h")
async def look(job: Job, ctx: Context) -> None:
    """Tell which incidents began, which go on, and which are over."""
    settings = ctx.settings
    found = await list_incidents(ctx.store, settings.incident_after)
    async with ctx.commit(job) as tx:
        teller = _Teller(tx, ctx.watches, settings, ctx.clock.now())
        await teller.compare(found)


@dataclass(frozen=True, slots=True)
class _Teller:
    """Tells what is new about incidents, beside what was told before."""

    tx: Tx
    watches: Watches
    settings: Settings
    now: datetime

    async def compare(self, found: list[Incident]) -> None:
        rows = await self.tx.execute(select(incidents).with_for_update())
        told = {row.subject: row for row in rows}
        for incident in found:
            row = told.pop(incident.subject, None)
            if row is None:
                await self._begin(incident)
            elif rules.is_to_remind(incident, row.told_at, self.now, self.settings.incident_remind):
                await self._remind(incident)
        for row in told.values():
            await self.tx.execute(delete(incidents).where(incidents.c.subject == row.subject))
            await self._tell(OVER, row.subject, row.kind, {})

    async def _begin(self, incident: Incident) -> None:
        if not rules.is_due(incident, self.settings.incident_after):
            return
        row = {
            "subject": incident.subject,
            "kind": incident.kind,
            "began_at": self.now,
            "told_at": self.now,
        }
        await self.tx.execute(insert(incidents).values(row))
        await self._tell(BEGAN, incident.subject, incident.kind, facts_of(incident))

    async def _remind(self, incident: Incident) -> None:
        mine = incidents.c.subject == incident.subject
        await self.tx.execute(update(incidents).where(mine).values(told_at=self.now))
        await self._tell(REMINDED, incident.subject, incident.kind, facts_of(incident))

    async def _tell(self, kind: str, subject: str, of: str, facts: Facts) -> None:
        about = watches_of(self.watches, subject, of)
        names = await find_names(self.tx, self.watches, [subject])
        body = {"subject": subject, "name": name_of(subject, names), **facts}
        told = Told(id=new_id(), kind=kind, watches=about, body=body, at=self.now)
        await sync.fan_out(self.tx, told, self.settings, self.now)
