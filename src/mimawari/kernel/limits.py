"""When a limit gives leave: pure decisions, in true time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from mimawari.kernel.clock import Mark
from mimawari.kernel.values import Limit

VALID_FOR = timedelta(seconds=60)
"""How long after a grant its request may still reach the site."""

START_FOR = timedelta(seconds=30)
"""How long after a grant its request may begin: it needs the rest of the time to arrive."""

NOTHING = timedelta(0)

_NAMES = {60.0: "minute_limit", 3600.0: "hourly_limit", 86400.0: "daily_limit"}


@dataclass(frozen=True, slots=True)
class Given:
    """A grant of the past: when it was given, and from when the site has surely counted it."""

    granted: Mark
    settled: Mark


@dataclass(frozen=True, slots=True)
class Hold:
    """A site's wish that nobody comes for a while."""

    since: Mark
    span: timedelta
    reason: str


def reason_of(limit: Limit) -> str:
    """Name what is waited for in the log's words."""
    return _NAMES.get(limit.per.total_seconds(), "limit")


def wait_for(
    limit: Limit,
    given: Sequence[Given],
    hold: Hold | None,
    now: Mark,
    returned: Given | None = None,
) -> tuple[timedelta, str]:
    """Tell how long to wait before the next grant, and why; `given` is newest first.

    The site counts a request somewhere between its grant and its settling. So the one that is
    `count` places back must have been settled for a whole window before another may start. One
    that was given back was never counted by the site, but we do not try again at once after it.
    """
    waits = [(NOTHING, "")]
    for last in (*given[:1], *((returned,) if returned else ())):
        since = now.elapsed_since(last.granted)
        waits.append((limit.spacing - since, reason_of(limit)))
    if len(given) >= limit.count:
        waits.append((_left_in_window(limit, given[limit.count - 1], now), reason_of(limit)))
    if hold is not None:
        waits.append((hold.span - now.elapsed_since(hold.since), hold.reason))
    return max(waits, key=lambda wait: wait[0])


def count_used(limit: Limit, given: Sequence[Given], now: Mark) -> int:
    """Count the grants that the site may still hold against us."""
    return sum(_left_in_window(limit, one, now) > NOTHING for one in given)


def _left_in_window(limit: Limit, one: Given, now: Mark) -> timedelta:
    """Tell how much longer a grant counts: a whole window from its settling on."""
    open_for = one.settled.elapsed_since(one.granted)
    return limit.per - (now.elapsed_since(one.granted) - open_for)
