"""Who hears of errors that nobody expected: the log always, and others if a setting says so."""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Protocol

import structlog

from mimawari.errors import BadInput
from mimawari.installation import install_advice
from mimawari.kernel.clock import Mark, RealClock
from mimawari.kernel.ports import Clock, Reporter
from mimawari.kernel.reporting import LOG
from mimawari.kernel.values import Trouble
from mimawari.settings import Settings

MOST = 10
PER = timedelta(minutes=1)
"""Of errors alike at most `MOST` in any `PER` leave this process."""

LAST_SECONDS = 2.0
"""How long the end of the process waits for what is not sent yet."""

log = structlog.get_logger(component="reporter")


class Outside(Protocol):
    """Somebody outside who is told of errors."""

    @property
    def name(self) -> str:
        """What people call it."""
        ...

    def report(self, trouble: Trouble) -> None:
        """Leave a report to be sent later; does not wait for the network."""
        ...

    def flush(self, seconds: float) -> None:
        """Send what waits, for so long at the most."""
        ...


class Reporters:
    """Tells the log of everything, and those outside of all but a flood."""

    def __init__(self, outside: Sequence[Outside], clock: Clock) -> None:
        self._outside = outside
        self._clock = clock
        self._told: defaultdict[object, deque[Mark]] = defaultdict(partial(deque, maxlen=MOST))
        self._floods: set[object] = set()

    def report(self, trouble: Trouble) -> None:
        """Tell everybody; one who cannot be told keeps nobody else from hearing."""
        LOG.report(trouble)
        if not self._outside or self._is_flood(trouble):
            return
        for each in self._outside:
            try:
                each.report(trouble)
            except Exception:
                log.exception("not reported", what=each.name)

    def _is_flood(self, trouble: Trouble) -> bool:
        alike = (trouble.component, trouble.message, trouble.what, type(trouble.error))
        told, now = self._told[alike], self._clock.mark()
        if len(told) < MOST or now.elapsed_since(told[0]) >= PER:
            told.append(now)
            self._floods.discard(alike)
            return False
        if alike not in self._floods:
            self._floods.add(alike)
            reason = f"{MOST} alike were reported within {PER.total_seconds():.0f} s"
            log.warning("more of it goes to the log only", what=trouble.what, reason=reason)
        return True


@asynccontextmanager
async def open_reporter(settings: Settings, clock: Clock | None = None) -> AsyncIterator[Reporter]:
    """Tell the log and whom the settings name; at the end wait a little for what is unsent."""
    outside = open_outside(settings)
    try:
        # Those outside count true minutes, however fast the system's own clock goes.
        yield Reporters(outside, clock or RealClock())
    finally:
        await asyncio.gather(*(asyncio.to_thread(each.flush, LAST_SECONDS) for each in outside))


def open_outside(settings: Settings) -> list[Outside]:
    """Open those outside whom the settings name, or say what has to be installed for them."""
    ways = ((settings.sentry_dsn, _open_sentry), (settings.bugsnag_key, _open_bugsnag))
    return [open_one(settings) for given, open_one in ways if given]


def _open_sentry(settings: Settings) -> Outside:
    try:
        # Loaded only where somebody wants it: it takes a while.
        from mimawari.app.reporting.sentry import Sentry  # noqa: PLC0415
    except ImportError as error:
        raise _missing("MIMAWARI_SENTRY_DSN", "sentry") from error
    return Sentry(settings.sentry_dsn)


def _open_bugsnag(settings: Settings) -> Outside:
    try:
        from mimawari.app.reporting.bugsnag import BugSnag  # noqa: PLC0415 - as above
    except ImportError as error:
        raise _missing("MIMAWARI_BUGSNAG_KEY", "bugsnag") from error
    return BugSnag(settings.bugsnag_key, settings.bugsnag_url)


def _missing(variable: str, extra: str) -> BadInput:
    return BadInput(
        f"{variable} is set, but the package it needs is not installed;"
        f" {install_advice(extra)}, or unset the variable",
        code="reporter_missing",
    )
