"""YouTube: which video an address names, and what is said of whether it is live."""

from mimawari.sites.youtube.answers import Answer, LiveStatus, Trouble, parse_answer, tell_trouble
from mimawari.sites.youtube.client import SITE, Resolver, fetch_answer
from mimawari.sites.youtube.manifest import parse_expiry
from mimawari.sites.youtube.resolver import YtDlpResolver, open_resolver
from mimawari.sites.youtube.urls import parse_video_id, watch_url

__all__ = [
    "SITE",
    "Answer",
    "LiveStatus",
    "Resolver",
    "Trouble",
    "YtDlpResolver",
    "fetch_answer",
    "open_resolver",
    "parse_answer",
    "parse_expiry",
    "parse_video_id",
    "tell_trouble",
    "watch_url",
]
