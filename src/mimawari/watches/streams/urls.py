"""Which stream an address names: many spellings, one stream."""

import re
from urllib.parse import urlsplit, urlunsplit

from mimawari.errors import BadInput
from mimawari.net.guard import Guard
from mimawari.sites.youtube import parse_video_id, watch_url

MOST_LETTERS = 512
_HOSTS = {
    "twitch": ("twitch.tv", "www.twitch.tv", "m.twitch.tv"),
    "niconico": ("live.nicovideo.jp", "live2.nicovideo.jp", "sp.live.nicovideo.jp"),
}
_PATHS = {
    "twitch": re.compile(r"/(?!(?:directory|videos|settings|downloads)$)[A-Za-z0-9_]{1,25}"),
    "niconico": re.compile(r"/(?:watch|gate)/(?:(?:lv|co|ch)[0-9]+|user/[0-9]+)"),
}
"""What leads to one stream there; the other pages of a platform never do."""
_PORTS = {"http": 80, "https": 443}


def parse_stream(url: str, platforms: tuple[str, ...]) -> str:
    """Return the one address that a stream is known under, or say what to give instead."""
    refusals = []
    for platform in platforms:
        try:
            return _parse(url, platform)
        except BadInput as error:
            refusals.append(error)
    raise refusals[0]


def _parse(url: str, platform: str) -> str:
    if platform == "youtube":
        return watch_url(parse_video_id(url))
    try:
        parts = urlsplit(url.strip()) if len(url) <= MOST_LETTERS else None
        port = parts.port if parts else None
    except ValueError:
        parts = None
    if parts is None or parts.scheme not in _PORTS or parts.username is not None:
        raise _refused(platform)
    host = (parts.hostname or "").rstrip(".")
    if platform in _HOSTS:
        path = parts.path.rstrip("/")
        is_stream = _PATHS[platform].fullmatch(path) is not None
        if host not in _HOSTS[platform] or not is_stream or port not in {None, 80, 443}:
            raise _refused(platform)
        return f"https://{_HOSTS[platform][0]}{path}"
    if not host or not parts.path.endswith(".m3u8"):
        raise _refused(platform)
    host = f"[{host}]" if ":" in host else host
    where = host if port in {None, _PORTS[parts.scheme]} else f"{host}:{port}"
    return urlunsplit((parts.scheme, where, parts.path, parts.query, ""))


def _refused(platform: str) -> BadInput:
    hint = "an address that ends in .m3u8" if platform == "hls" else "the address of one stream"
    return BadInput(f"this is no stream of {platform}; give {hint}", code="INVALID_URL")


async def check_stream(guard: Guard, stream_url: str) -> None:
    """Raise Forbidden if nothing may be fetched from a playlist's host."""
    parts = urlsplit(stream_url)
    port = _PORTS[parts.scheme] if parts.port is None else parts.port
    await guard.addresses(parts.hostname or "", port)


def platform_of(stream_url: str) -> str:
    """Name the platform of an address as it is kept."""
    host = urlsplit(stream_url).hostname
    for platform, hosts in _HOSTS.items():
        if host == hosts[0]:
            return platform
    return "youtube" if stream_url.startswith(watch_url("")) else "hls"


def name_of(stream_url: str) -> str:
    """Name a stream for a shared resolver: a video by its id, others by their address."""
    is_video = platform_of(stream_url) == "youtube"
    return parse_video_id(stream_url) if is_video else stream_url
