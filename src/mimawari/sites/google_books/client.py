"""Asks Google Books for volumes, and tells its refusals apart."""

import re

from mimawari.errors import BadInput, Blocked
from mimawari.net.page import MOST_JSON_BYTES, Http, Outcome, Page, Site, Verdict
from mimawari.sites.google_books.models import Query, VolumesPage
from mimawari.sites.google_books.replies import Complaint, parse_complaint, parse_volumes

DAY_USED_UP = "day's quota used up"
KEY_REFUSED = "the API key is refused: check it, or make a new one"

_KEY = re.compile(r"[!-~]{1,200}")
_MARKUP = re.compile(rb"(?:\xef\xbb\xbf)?\s*<")


class QuotaUsedUp(Blocked):
    """The day's requests are used up: nothing but another day helps."""


def judge(page: Page) -> Verdict | None:
    """Tell refusals apart by their status and by what their JSON says, both together."""
    match page.status:
        case 200 if _MARKUP.match(page.body):
            return Verdict(Outcome.DRIFT, "a web page in place of volumes")
        case 503:
            return Verdict(Outcome.TRANSIENT, "the API is out of order for now (503)")
        case 403 | 429:
            return _judge_limit(page.status, parse_complaint(page.body))
        case 400 | 401 if _is_of_the_key(parse_complaint(page.body)):
            return Verdict(Outcome.BLOCKED, KEY_REFUSED)
        case _:
            return None


def _judge_limit(status: int, complaint: Complaint | None) -> Verdict:
    if complaint and complaint.is_of_the_day:
        return Verdict(Outcome.RATE_LIMITED, DAY_USED_UP)
    if status == 429 or (complaint and complaint.is_of_a_burst):  # noqa: PLR2004 - too many requests
        return Verdict(Outcome.RATE_LIMITED, "burst of requests: too many at once")
    return Verdict(Outcome.BLOCKED, _advise(complaint))


def _is_of_the_key(complaint: Complaint | None) -> bool:
    return complaint is not None and complaint.is_of_the_key


def _advise(complaint: Complaint | None) -> str:
    """Say what to do about a 403."""
    if complaint is None:
        return "403, but not from the API: check the address, or what stands between it and us"
    if complaint.is_of_the_key:
        return KEY_REFUSED
    if complaint.is_switched_off:
        return "the API refuses us (403): enable the Books API in the key's project"
    return "the API refuses us (403): enable the Books API, or check the key and its restrictions"


SITE = Site(name="google_books", judge=judge, most_bytes=MOST_JSON_BYTES)


async def fetch_volumes(http: Http, url: str, query: Query, key: str | None = None) -> VolumesPage:
    """Fetch the volumes of a query; raise QuotaUsedUp when that will not work again today."""
    headers = {"Accept": "application/json"}
    if key:
        if not _KEY.fullmatch(key):
            raise BadInput("the API key has characters that no key has; copy it again")
        # In the address it would stand in every log on the way.
        headers["X-Goog-Api-Key"] = key
    target = f"{url.rstrip('/')}/books/v1/volumes?{query.encode()}"
    try:
        page = await http.fetch(SITE, target, headers=headers)
    except Blocked as error:
        if DAY_USED_UP in str(error):
            raise QuotaUsedUp(error.site, str(error), until=error.until) from error
        raise
    return await http.read(parse_volumes, page.body)
