"""How somebody behaved towards the rentals site, from its log alone."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from mimawari.sim.sites.yahoo_realestate.observed import GONE
from mimawari.sim.sites.yahoo_realestate.site import DETAIL

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
    the one could not know of the other's answer; nor could another process for as long as the
    judge was told that a request may be under way.
    """

    @property
    def ok(self) -> bool:
        """Whether nothing was asked that should not have been, the pace aside."""
        return not (
            self.asked_again_after_404
            or self.blocked_url_within_an_hour
            or self.requests_within_5_min_after_a_block
        )


def judge_manners(
    requests: Sequence[Mapping[str, Any]], under_way_for: timedelta = timedelta(0)
) -> Manners:
    """Judge by all that the site was asked, in the order in which it was."""
    details = list_details(requests)
    gone: set[str] = set()
    blocked: dict[str, Mapping[str, Any]] = {}
    blocks: list[Mapping[str, Any]] = []
    again = too_soon = in_pause = 0
    for seen in requests:
        at, url = _at(seen), f"{seen['path']}?{seen['query']}"
        blocks = [block for block in blocks if at - _at(block) < PAUSE_FOR]
        again += seen["path"] in gone
        known = blocked.get(url)
        too_soon += known is not None and _is_within(seen, known, HOUR, under_way_for)
        in_pause += not all(_are_together(seen, block, under_way_for) for block in blocks)
        if seen["status"] in GONE and DETAIL.fullmatch(seen["path"]):
            gone.add(seen["path"])
        if is_block(seen):
            blocked[url] = seen
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


def _are_together(
    seen: Mapping[str, Any], block: Mapping[str, Any], under_way_for: timedelta
) -> bool:
    """Say whether a request was on its way before its asker could know of a block page."""
    paths = sorted((seen["path"], block["path"]))
    is_one_of_each = DETAIL.fullmatch(paths[0]) and paths[1].startswith(SEARCH)
    if is_one_of_each and seen["at"] == block["at"]:
        return True
    return not _is_within(seen, block, PAUSE_FOR, under_way_for)


def _is_within(
    seen: Mapping[str, Any], block: Mapping[str, Any], span: timedelta, under_way_for: timedelta
) -> bool:
    """Say whether a request came so soon after a block page that its asker could have known of."""
    after = _at(seen) - _at(block)
    is_another = seen["user_agent"] != block["user_agent"]
    return after < span and not (is_another and after < under_way_for)


def _count_most(details: Sequence[datetime]) -> int:
    counts = (bisect_left(details, at + HOUR) - n for n, at in enumerate(details))
    return max(counts, default=0)


def _at(seen: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(seen["at"])
