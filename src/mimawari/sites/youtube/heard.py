"""Reads what yt-dlp found out on a video, and tells an answer from a refusal."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mimawari.sites.youtube.answers import (
    Answer,
    LiveStatus,
    Trouble,
    parse_answer,
    tell_trouble,
)

NOTHING = "nothing was said of the video"
_HLS = frozenset({"m3u8", "m3u8_native"})
_SCHEDULED = (
    *("playabilityStatus", "liveStreamability", "liveStreamabilityRenderer"),
    *("offlineSlate", "liveStreamOfflineSlateRenderer", "scheduledStartTime"),
)
_SECONDS = re.compile(r"[0-9]{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What was extracted, what the players were told, and the lines of warning on the way."""

    info: Mapping[str, Any]
    players: Sequence[Any] = ()
    lines: Sequence[str] = ()


def parse_heard(heard: Heard) -> Answer:
    """Take a status only from one who may watch, or who is told to come later."""
    status, manifest_url = heard.info.get("live_status"), find_manifest(heard.info.get("formats"))
    is_status = isinstance(status, str) and status in set(LiveStatus)
    is_open = manifest_url is not None or any(map(_is_playable, heard.players))
    if not is_status or not (is_open or status == LiveStatus.UPCOMING):
        return parse_answer({"error": _choose(heard.lines)})
    release_timestamp = heard.info.get("release_timestamp")
    return parse_answer(
        {
            "live_status": status,
            "manifest_url": manifest_url if status == LiveStatus.LIVE else None,
            "release_timestamp": release_timestamp or _find_schedule(heard.players),
            "title": heard.info.get("title"),
        }
    )


def find_manifest(formats: Any) -> str | None:
    """Return the address of the manifest of all variants, or else of the lowest one."""
    listed = formats if isinstance(formats, list) else []
    hls = [one for one in listed if isinstance(one, dict) and one.get("protocol") in _HLS]
    masters = [one["manifest_url"] for one in hls if is_web(one.get("manifest_url"))]
    variants = sorted((one for one in hls if is_web(one.get("url"))), key=_height)
    return next(iter([*masters, *(one["url"] for one in variants)]), None)


def is_web(url: Any) -> bool:
    """Tell whether something is an address of the web."""
    return isinstance(url, str) and url.startswith(("https://", "http://"))


def _height(variant: Mapping[str, Any]) -> float:
    height = variant.get("height")
    # One without pictures is of no use to who looks for black ones.
    return height if isinstance(height, int | float) and height > 0 else float("inf")


def _is_playable(player: Any) -> bool:
    return bool(_dig(player, ("playabilityStatus", "status")) == "OK")


def _find_schedule(players: Sequence[Any]) -> int | None:
    """Return when a stream is to begin, as players that know no dates are told it."""
    told = (_dig(player, _SCHEDULED) for player in players)
    return next((int(at) for at in told if isinstance(at, str) and _SECONDS.fullmatch(at)), None)


def _dig(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _choose(lines: Sequence[str]) -> str:
    """Choose the line that says most: the first that is known, or else the last one."""
    known = (line for line in lines if tell_trouble(line) is not Trouble.UNKNOWN)
    return next(known, lines[-1] if lines else NOTHING).strip() or NOTHING
