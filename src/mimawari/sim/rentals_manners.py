"""How somebody behaved towards the rentals site, from its log alone."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mimawari.sim.rentals import DETAIL
from mimawari.sim.rentals_looks import GONE

HOUR = timedelta(hours=1)
PAUSE_FOR = timedelta(minutes=5)
SEARCH = "/rent/search/"

Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What a log tells of those who asked."""

    requests: int
    details: int
    most_in_an_hour: int
    """The most requests for rooms' own pages in any 3,600 seconds."""
    asked_again_after_404: int
    """Requests for a room's own page after it was 404 or 410."""
    blocked_url_within_an_hour: int
    """Requests for an address less than an hour after it was answered by a block page."""
    requests_within_5_min_after_a_block: int
    """Requests of any kind less than five minutes after a block page.

    A list and a detail that were asked for in the same moment were on their way together, and
    the one could not know of the other's answer.
    """

    @property
    def ok(self) -> bool:
        """Whether nothing was asked that should not have been, the pace aside."""
        return not (
            self.asked_again_after_404
            or self.blocked_url_within_an_hour
            or self.requests_within_5_min_after_a_block
        )


def judge_manners(requests: Sequence[Mapping[str, Any]]) -> Manners:
    """Judge by all that the site was asked, in the order in which it was."""
    details = list_details(requests)
    gone: set[str] = set()
    blocked: dict[str, datetime] = {}
    blocks: list[Mapping[str, Any]] = []
    again = too_soon = in_pause = 0
    for seen in requests:
        at, url = _at(seen), f"{seen['path']}?{seen['query']}"
        blocks = [block for block in blocks if at - _at(block) < PAUSE_FOR]
        again += seen["path"] in gone
        too_soon += url in blocked and at - blocked[url] < HOUR
        in_pause += not all(_are_together(seen, block) for block in blocks)
        if seen["status"] in GONE and DETAIL.fullmatch(seen["path"]):
            gone.add(seen["path"])
        if is_block(seen):
            blocked[url] = at
            blocks.append(seen)
    return Manners(
        requests=len(requests),
        details=len(details),
        most_in_an_hour=_count_most(details),
        asked_again_after_404=again,
        blocked_url_within_an_hour=too_soon,
        requests_within_5_min_after_a_block=in_pause,
    )


def is_block(seen: Mapping[str, Any]) -> bool:
    """Say whether a request was answered by the site's block page."""
    return seen["order"] is not None and seen["order"]["do"] == "blocked"


def list_details(requests: Sequence[Mapping[str, Any]]) -> list[datetime]:
    """List when rooms' own pages were asked for, whatever the answer was."""
    return [_at(seen) for seen in requests if DETAIL.fullmatch(seen["path"])]


def list_blocks(requests: Sequence[Mapping[str, Any]]) -> list[datetime]:
    """List when block pages were given."""
    return [_at(seen) for seen in requests if is_block(seen)]


def count_least(details: Sequence[datetime], spans: Sequence[Span]) -> int | None:
    """Count the fewest details in any hour that lies within one of the spans; None if none does.

    Fewest are in an hour that begins with its span or right after a detail. What was to come at
    the very end of a span may have come after it.
    """
    counts = []
    for start, end in spans:
        inside = [at for at in details if start <= at < end - HOUR]
        if end - start >= HOUR:
            counts.append(bisect_left(details, start + HOUR) - bisect_left(details, start))
        counts += [bisect_right(details, at + HOUR) - bisect_right(details, at) for at in inside]
    return min(counts, default=None)


def _are_together(seen: Mapping[str, Any], block: Mapping[str, Any]) -> bool:
    """Say whether one is a list, the other a detail, and both were asked for in one moment."""
    paths = sorted((seen["path"], block["path"]))
    is_one_of_each = DETAIL.fullmatch(paths[0]) and paths[1].startswith(SEARCH)
    return bool(is_one_of_each) and seen["at"] == block["at"]


def _count_most(details: Sequence[datetime]) -> int:
    counts = (bisect_left(details, at + HOUR) - n for n, at in enumerate(details))
    return max(counts, default=0)


def _at(seen: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(seen["at"])
