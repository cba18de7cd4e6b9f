"""What an answer on how a stream stands means for its monitor: pure decisions."""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum, auto

from mimawari.sites.youtube import Answer, LiveStatus, Trouble, parse_expiry
from mimawari.watches.streams import rules
from mimawari.watches.streams.models import Source

GOOD_FOR = timedelta(hours=5)
"""How long an address is taken for good that does not say so itself; they last about six."""


class Standing(StrEnum):
    """How a stream stands by one more answer."""

    LIVE = auto()
    UPCOMING = auto()
    ENDING = auto()
    """One clean answer says that it is over; another has to agree."""
    ENDED = auto()
    GONE = auto()
    UNKNOWN = auto()


def heed(source: Source, answer: Answer, now: datetime) -> tuple[Source, Standing]:
    """Take an answer: only a clean one says that a stream is live or over."""
    source = replace(
        source,
        title=answer.title or source.title,
        release_at=answer.release_at or source.release_at,
        held_by=None,
    )
    if answer.trouble is Trouble.UPCOMING or answer.live_status is LiveStatus.UPCOMING:
        return replace(source, failures=0, ends=0), Standing.UPCOMING
    if answer.trouble is not None:
        source = replace(source, failures=source.failures + 1)
        return source, Standing.GONE if answer.trouble.is_for_good else Standing.UNKNOWN
    if answer.live_status is LiveStatus.LIVE:
        return _live(source, answer, now), Standing.LIVE
    ends = source.ends + 1
    over = ends >= rules.ENDS_NEEDED
    return replace(source, ends=ends, failures=0), Standing.ENDED if over else Standing.ENDING


def _live(source: Source, answer: Answer, now: datetime) -> Source:
    source = replace(
        source,
        failures=0,
        ends=0,
        ask_at=now + rules.LIVE_EVERY,
        not_before=now + rules.AGAIN_AFTER,
    )
    url = answer.manifest_url
    # One that is good for a while is kept: another one would have to be read from its top.
    if url is None or not needs_address(source, now):
        return source
    return replace(
        source,
        manifest_url=url,
        list_url=None,
        is_refused=False,
        good_until=parse_expiry(url) or now + GOOD_FOR,
    )


def needs_address(source: Source, now: datetime) -> bool:
    """Return whether a new address of the playlist is needed."""
    return source.manifest_url is None or source.is_refused or is_expiring(source, now)


def is_expiring(source: Source, now: datetime) -> bool:
    """Say whether the address of the playlist is about to run out."""
    return source.good_until is not None and source.good_until - rules.RENEW_BEFORE <= now


def may_ask(source: Source, now: datetime) -> bool:
    """Say whether nothing keeps anybody from asking."""
    return source.not_before is None or source.not_before <= now
