"""What is said of a video: whether it is live, and the many ways of saying that it cannot be told.

Only a clean answer may say that a stream is live or has ended. A refusal that concerns us, and
not the video, says nothing about it.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mimawari.errors import Invalid
from mimawari.text import one_line

LATEST_AT = datetime(2200, 1, 1, tzinfo=UTC)


class LiveStatus(StrEnum):
    """How a video stands, in the words of those who resolve it."""

    LIVE = "is_live"
    UPCOMING = "is_upcoming"
    WAS_LIVE = "was_live"
    POST_LIVE = "post_live"
    NOT_LIVE = "not_live"

    @property
    def is_ended(self) -> bool:
        """Whether it was live and is not any more, or never was."""
        return self in {LiveStatus.WAS_LIVE, LiveStatus.POST_LIVE, LiveStatus.NOT_LIVE}


class Trouble(StrEnum):
    """Why nothing can be told of a video."""

    UPCOMING = "upcoming"
    PRIVATE = "private"
    REMOVED = "removed"
    UNAVAILABLE = "unavailable"
    MEMBERS_ONLY = "members_only"
    AGE_RESTRICTED = "age_restricted"
    REGION = "region"
    BOT_CHALLENGE = "bot_challenge"
    RATE_LIMITED = "rate_limited"
    NO_FORMAT = "no_format"
    NETWORK = "network"
    UNKNOWN = "unknown"

    @property
    def is_for_good(self) -> bool:
        """Whether nobody will see this video again."""
        return self in {Trouble.PRIVATE, Trouble.REMOVED, Trouble.UNAVAILABLE}


# The first that is found counts: a line of a bot check speaks of signing in as a private one does.
_WORDS: dict[Trouble, tuple[str, ...]] = {
    Trouble.RATE_LIMITED: ("rate-limited", "Error 429", "Too Many Requests", "try again later"),
    Trouble.BOT_CHALLENGE: (r"not a (?:ro)?bot", "captcha"),
    Trouble.AGE_RESTRICTED: ("confirm your age", "age-restricted", "inappropriate for some"),
    Trouble.MEMBERS_ONLY: ("members[- ]only", "channel's members", "Join this channel"),
    Trouble.UPCOMING: (
        *("will begin", "will start", "Premieres? in", "Scheduled for", "LIVE_STREAM_OFFLINE"),
    ),
    Trouble.REGION: (
        "available in your (?:country|region|location)",
        "blocked it (?:in|on|from)",
        "geo[- ]?restrict",
    ),
    Trouble.PRIVATE: ("Private video", "is private", "is a private"),
    Trouble.REMOVED: (
        *("has been removed", "removed by", "been terminated", "been deleted", "does not exist"),
        *("no longer available", "account .{0,100}closed"),
    ),
    Trouble.NO_FORMAT: ("Requested format", "DRM protected", "No video formats", "No plugin can"),
    Trouble.UNAVAILABLE: (
        "(?:video|recording) is (?:not available|unavailable)",
        "Video unavailable",
        "isn't available anymore",
    ),
    Trouble.NETWORK: (
        *(
            "Error 5[0-9][0-9]",
            "Connection (?:reset|refused|aborted)",
            "timed? ?out",
            "getaddrinfo",
        ),
        *("resolve host", "service not known", "unreachable", "SSL", "EOF occurred"),
        *("IncompleteRead", "Remote end closed", "Unable to (?:connect|download)"),
    ),
}
# Said of a stream that is over and was not kept, which is nothing that went wrong.
_NOT_KEPT = re.compile(r"live stream recording is (?:not available|unavailable)", re.IGNORECASE)
_SAID = {trouble: re.compile("|".join(words), re.IGNORECASE) for trouble, words in _WORDS.items()}


def tell_trouble(line: str) -> Trouble:
    """Tell what an error line means; one that nobody knows says nothing about the video."""
    said = line.replace("\u2019", "'")
    return next(
        (trouble for trouble, words in _SAID.items() if words.search(said)), Trouble.UNKNOWN
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What is known of a video now; without a status, why not."""

    live_status: LiveStatus | None
    manifest_url: str | None = None
    release_at: datetime | None = None
    title: str | None = None
    trouble: Trouble | None = None
    words: str | None = None


def parse_answer(said: Mapping[str, Any]) -> Answer:
    """Read what a resolver says: an error line, or how the video stands."""
    error = said.get("error")
    if isinstance(error, str) and error.strip():
        # What follows asks its own users to report it.
        words = one_line(error.partition("; please report this issue")[0], most=300)
        if _NOT_KEPT.search(error):
            return Answer(live_status=LiveStatus.WAS_LIVE, words=words)
        return Answer(live_status=None, trouble=tell_trouble(error), words=words)
    status = _parse_status(said)
    url, title = said.get("manifest_url"), said.get("title")
    is_web = isinstance(url, str) and re.match(r"https?://\S+$", url)
    return Answer(
        live_status=status,
        manifest_url=str(url) if is_web else None,
        release_at=_parse_time(said.get("release_timestamp")),
        title=one_line(title, most=300) if isinstance(title, str) else None,
    )


def _parse_status(said: Mapping[str, Any]) -> LiveStatus:
    given = said.get("live_status")
    if isinstance(given, str) and given in set(LiveStatus):
        return LiveStatus(given)
    # Some tell no status but only whether it is live.
    if said.get("is_live") is True:
        return LiveStatus.LIVE
    raise Invalid(f"the resolver tells no status of the video: {one_line(str(given), most=40)!r}")


def _parse_time(value: Any) -> datetime | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 < value < LATEST_AT.timestamp():
        return None
    return datetime.fromtimestamp(value, UTC)
