"""What a resolver says of simulated streams, in the words of the real one."""

from datetime import datetime, timedelta
from typing import Any

from mimawari.sim.sites.youtube.programme import TROUBLES, Programme

POST_LIVE_FOR = timedelta(minutes=10)
"""A stream that has ended is for so long on the way to a recording."""
LINES = {
    "private": "Private video. Sign in if you've been granted access to this video",
    "removed": "Video unavailable. This video has been removed by the uploader",
    "members": (
        "This video is available to this channel's members on level: メンバー (or any higher"
        " level). Join this channel to get access to members-only content and other exclusive"
        " perks."
    ),
    "region": "The uploader has not made this video available in your country",
    "bot": (
        "Sign in to confirm you\u2019re not a bot. Use --cookies-from-browser or --cookies for the"
        " authentication."
    ),
    "rate": (
        "This content isn't available, try again later. The current session has been rate-limited"
        " by YouTube for up to an hour."
    ),
    "network": "Unable to download API page: HTTP Error 503: Service Unavailable",
}
UNKNOWN = "Video unavailable"


def tell_status(programme: Programme, now: datetime) -> str:
    """Tell how a programme stands."""
    ends_at = programme.ends_at
    if now < programme.starts_at:
        return "is_upcoming"
    if ends_at is None or now < ends_at:
        return "is_live"
    return "post_live" if now < ends_at + POST_LIVE_FOR else "was_live"


def resolve(programme: Programme, now: datetime, manifest_url: str) -> dict[str, Any]:
    """Say how a programme stands, and where it is to be seen while it is live."""
    on_clock = (now - programme.starts_at).total_seconds()
    trouble = programme.find_upset(on_clock, *TROUBLES)
    if trouble is not None:
        return refuse(programme.video_id, LINES[trouble.what])
    status = tell_status(programme, now)
    # What was announced counts until it has begun.
    release_at = programme.scheduled_at if status == "is_upcoming" else programme.starts_at
    return {
        "live_status": status,
        "is_live": status == "is_live",
        "manifest_url": manifest_url if status == "is_live" else None,
        "release_timestamp": int(release_at.timestamp()) if release_at else None,
        "title": programme.title,
    }


def refuse(video_id: str, line: str) -> dict[str, Any]:
    """Say that nothing can be said of a video."""
    return {"error": f"ERROR: [youtube] {video_id}: {line}"}
