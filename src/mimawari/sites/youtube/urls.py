"""Addresses of videos: many spellings, one video."""

import re
from urllib.parse import parse_qs, urlsplit

from mimawari.errors import BadInput

MOST_LETTERS = 512
_ID = re.compile(r"[A-Za-z0-9_-]{11}")
_HOSTS = {"youtube.com", "www.youtube.com", "m.youtube.com", "music.youtube.com"}
_SHORT_HOSTS = {"youtu.be", "www.youtu.be"}
_LIVE = "/live/"
_HINT = "give the address of one video, like https://www.youtube.com/watch?v=XXXXXXXXXXX"


def parse_video_id(url: str) -> str:
    """Return the id of the video that an address names, or say what to give instead."""
    if len(url) > MOST_LETTERS:
        raise _refused("it is too long")
    try:
        parts = urlsplit(url.strip())
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError as error:
        raise _refused("it is no address") from error
    if parts.scheme.lower() not in {"http", "https"} or parts.username is not None:
        raise _refused("it is no address of the web")
    if port not in {None, 80, 443} or host not in _HOSTS | _SHORT_HOSTS:
        raise _refused("it is not on YouTube")
    found = _find_id(host, parts.path, parts.query)
    if found is None or not _ID.fullmatch(found):
        raise _refused("it names no single video")
    return found


def _find_id(host: str, path: str, query: str) -> str | None:
    if host in _SHORT_HOSTS:
        return path.strip("/")
    if path.startswith(_LIVE):
        return path.removeprefix(_LIVE).strip("/")
    if path.rstrip("/") != "/watch":
        return None
    named = parse_qs(query, max_num_fields=100).get("v", [])
    # Two different ones name no single video.
    return named[0] if len(set(named)) == 1 else None


def watch_url(video_id: str) -> str:
    """Write the one address that a video is known under."""
    return f"https://www.youtube.com/watch?v={video_id}"


def _refused(reason: str) -> BadInput:
    return BadInput(
        f"this is not the address of a YouTube video: {reason}; {_HINT}", code="INVALID_URL"
    )
