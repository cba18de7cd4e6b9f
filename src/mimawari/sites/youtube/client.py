"""Asks a shared resolver how a video stands, so that one address need not ask YouTube for all."""

import json
from datetime import timedelta
from typing import Protocol
from urllib.parse import urlencode, urlsplit

from mimawari.errors import Invalid
from mimawari.net.page import Http, Outcome, Page, Site, Verdict
from mimawari.sites.reading import BOUNDED
from mimawari.sites.youtube.answers import Answer, parse_answer

MOST_BYTES = 64 * 1024
DEADLINE = timedelta(seconds=20)


class Resolver(Protocol):
    """Tells how a video stands; what the site refuses to say is an answer too."""

    async def resolve(self, url: str) -> Answer:
        """Return what is known of the video at a watch address now."""
        ...


def judge(page: Page) -> Verdict | None:
    """Take a resolver that is not there for a wrong address: the video may well be there."""
    if page.status in {404, 410}:
        advice = "check MIMAWARI_STREAMS_RESOLVER_URL"
        return Verdict(Outcome.DRIFT, f"no resolver at this address ({page.status}): {advice}")
    return None


SITE = Site(name="resolver", judge=judge, most_bytes=MOST_BYTES, deadline_for=DEADLINE)


async def fetch_answer(http: Http, base_url: str, video_id: str) -> Answer:
    """Fetch what a shared resolver says of a video; a reply that says nothing is refused."""
    joint = "&" if urlsplit(base_url).query else "?"
    target = f"{base_url}{joint}{urlencode({'v': video_id})}"
    page = await http.fetch(SITE, target, headers={"Accept": "application/json"})
    # Bounded and small, it takes less time to read than to hand over.
    return parse_reply(page.body)


def parse_reply(body: bytes) -> Answer:
    """Read a resolver's reply, which is one JSON object."""
    try:
        said = json.loads(body, **BOUNDED)
    except (ValueError, RecursionError) as error:
        raise Invalid("the resolver's reply is no JSON", page=body) from error
    if not isinstance(said, dict):
        raise Invalid("the resolver's reply is no JSON object", page=body)
    try:
        return parse_answer(said)
    except Invalid as error:
        raise Invalid(str(error), page=body) from error
