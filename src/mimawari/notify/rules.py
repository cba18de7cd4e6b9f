"""Who is told what, and when: pure decisions."""

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from mimawari.kernel.incidents import Incident
from mimawari.notify.models import How, Setting, Told

REFERENCES = ("env:", "file:")


def is_chosen(setting: Setting, told: Told) -> bool:
    """Say whether an event is one of those that a target is told of."""
    of_watch = not setting.watches or not set(setting.watches).isdisjoint(told.watches)
    return of_watch and (not setting.kinds or told.kind in setting.kinds)


def due_at(setting: Setting, now: datetime, zone: ZoneInfo) -> datetime:
    """Tell when what happens now is told."""
    match setting.how:
        case How.AT_ONCE:
            return now
        case How.GROUPED:
            return now + setting.span
        case How.DAILY:
            return next_daily(time.fromisoformat(setting.daily_at), now, zone)


def next_daily(at: time, now: datetime, zone: ZoneInfo) -> datetime:
    """Tell when it is a time of day next, in a zone; a time that a day leaves out comes after."""
    day = now.astimezone(zone).date()
    found = datetime.combine(day, at, zone)
    while found <= now:
        day += timedelta(days=1)
        found = datetime.combine(day, at, zone)
    return found.astimezone(now.tzinfo)


def is_reference(url: str) -> bool:
    """Say whether an address is not kept itself, but where it is found."""
    return url.startswith(REFERENCES)


def is_due(incident: Incident, after: int) -> bool:
    """Say whether an incident has gone on for long enough to be told."""
    return incident.failures >= after


def is_to_remind(
    incident: Incident, told_at: datetime, now: datetime, remind_for: timedelta
) -> bool:
    """Say whether it is time to remind of an incident, which must have gone on since."""
    goes_on = incident.last_at is None or incident.last_at > told_at
    return goes_on and now - told_at >= remind_for
