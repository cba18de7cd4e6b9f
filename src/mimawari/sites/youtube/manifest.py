"""Addresses of manifests, which are good for some hours only."""

import re
from datetime import UTC, datetime

from mimawari.sites.youtube.answers import LATEST_AT

# Ten digits reach from 2001 to 2286; what is shorter or longer is no time of a manifest.
_EXPIRY = re.compile(r"(?:/expire/|[?&]expire=)([0-9]{10})(?![0-9])")


def parse_expiry(manifest_url: str) -> datetime | None:
    """Return until when a manifest's address is good; None if it does not say."""
    found = _EXPIRY.search(manifest_url.partition("#")[0])
    if found is None:
        return None
    until = datetime.fromtimestamp(int(found[1]), UTC)
    return until if until < LATEST_AT else None
