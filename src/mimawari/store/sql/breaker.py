"""The breaker: closed, open until a time, then one trial."""

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Row, select, update

from mimawari.errors import Wait
from mimawari.kernel.values import BreakerPolicy, BreakerView, Pause
from mimawari.store.sql.engine import Database, Session
from mimawari.store.sql.pauses import begin_pause, end_pause
from mimawari.store.sql.tables import breakers
from mimawari.text import one_line

CLOSED, OPEN, TRIAL = "closed", "open", "trial"
KIND: Final = "breaker"
_MICROSECOND = timedelta(microseconds=1)


class SqlBreaker:
    """The breaker on SQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def check(self, site: str) -> Wait | None:
        """Say until when to stay away; after that time let exactly one caller try."""
        view = await self.find(site)
        if view is None or view.state == CLOSED:
            return None
        return await self._database.run(lambda session: self._check_in(session, site))

    def _check_in(self, session: Session, site: str) -> Wait | None:
        row = self._lock(session, site)
        if row.state == CLOSED:
            return None
        now = self._database.clock.now()
        if row.until_at > now:
            reason = "one request is trying the site" if row.state == TRIAL else row.reason
            return Wait(row.until_at, reason, f"breaker {site}")
        trial_until = now + timedelta(microseconds=row.trial_for_us)
        values = {"state": TRIAL, "until_at": trial_until}
        session.execute(update(breakers).where(breakers.c.site == site).values(values))
        return None

    async def failed(
        self, site: str, policy: BreakerPolicy, reason: str, until: datetime | None = None
    ) -> BreakerView:
        """Count one refusal and tell what follows; a failed trial opens it again at once."""

        def work(session: Session) -> BreakerView:
            row = self._lock(session, site)
            failures = row.failures + 1
            opens = failures >= policy.failures or row.state != CLOSED
            named = row.until_at if row.state == OPEN else None
            times = (until, named, self._cool(policy))
            back_at = max(filter(None, times)) if opens else None
            values = {
                "state": OPEN if opens else CLOSED,
                "failures": failures,
                "until_at": back_at,
                "trial_for_us": policy.trial_for // _MICROSECOND,
                "reason": one_line(reason),
            }
            session.execute(update(breakers).where(breakers.c.site == site).values(values))
            if back_at is not None:
                now = self._database.clock.now()
                pause = Pause(what=KIND, name=site, since=now, until=back_at, reason=reason)
                begin_pause(session, pause)
            return BreakerView(site, str(values["state"]), failures, back_at, one_line(reason))

        return await self._database.run(work)

    async def worked(self, site: str) -> None:
        """Close the breaker and forget the failures."""
        if await self.find(site) is None:
            return
        values = {"state": CLOSED, "failures": 0, "until_at": None, "reason": None}

        def work(session: Session) -> None:
            session.execute(update(breakers).where(breakers.c.site == site).values(values))
            end_pause(session, KIND, site, self._database.clock.now())

        await self._database.run(work)

    async def find(self, site: str) -> BreakerView | None:
        """Tell how a breaker stands; changes nothing."""
        async with self._database.read() as connection:
            query = select(breakers).where(breakers.c.site == site)
            row = (await connection.execute(query)).first()
        return None if row is None else _view(row)

    async def list(self) -> list[BreakerView]:
        """List the breakers that are not closed or have counted a failure."""
        query = select(breakers).where(breakers.c.failures > 0).order_by(breakers.c.site)
        async with self._database.read() as connection:
            return [_view(row) for row in await connection.execute(query)]

    def _lock(self, session: Session, site: str) -> Row[Any]:
        new = {"site": site, "state": CLOSED, "failures": 0, "trial_for_us": 0}
        session.execute(self._database.dialect.upsert(breakers, new, {"site": site}))
        query = select(breakers).where(breakers.c.site == site).with_for_update()
        return session.execute(query).one()

    def _cool(self, policy: BreakerPolicy) -> datetime:
        return self._database.clock.now() + policy.cool_for


def _view(row: Row[Any]) -> BreakerView:
    return BreakerView(row.site, row.state, row.failures, row.until_at, row.reason)
