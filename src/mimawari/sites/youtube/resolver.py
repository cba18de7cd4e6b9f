"""Resolves videos with yt-dlp in a thread of its own, every connection through the gate."""

from collections.abc import Mapping
from datetime import timedelta
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mimawari.errors import BadInput
from mimawari.installation import install_advice
from mimawari.sites.youtube.answers import Answer, LiveStatus, Trouble
from mimawari.sites.youtube.aside import Aside
from mimawari.sites.youtube.urls import parse_video_id, watch_url

if TYPE_CHECKING:
    from mimawari.sites.youtube.ytdlp import YtDlp

DEADLINE = timedelta(seconds=30)
NONE: Mapping[str, Any] = MappingProxyType({})


def _make(proxy: str, options: Mapping[str, Any], streamlink_options: Mapping[str, Any]) -> "YtDlp":
    try:
        from mimawari.sites.youtube.ytdlp import YtDlp  # noqa: PLC0415 - an extra, and a heavy one
    except ModuleNotFoundError as error:
        advice = install_advice("youtube")
        raise BadInput(f"yt-dlp is missing; {advice}", code="no_resolver") from error
    return YtDlp(proxy, options, streamlink_options)


class YtDlpResolver:
    """Asks YouTube itself, one video at a time; yt-dlp is loaded when the first is asked for."""

    def __init__(
        self,
        proxy: str,
        *,
        deadline_for: timedelta = DEADLINE,
        options: Mapping[str, Any] = NONE,
        streamlink_options: Mapping[str, Any] = NONE,
    ) -> None:
        self._deadline_for = deadline_for
        self._aside = Aside(partial(_make, proxy, options, streamlink_options))

    async def resolve(self, url: str) -> Answer:
        """Return what is known of the video at a watch address now; trouble is an answer too."""
        watch = watch_url(parse_video_id(url))
        try:
            return await self._aside.run(lambda ytdlp: ytdlp.resolve(watch), self._deadline_for)
        except TimeoutError as error:
            words = str(error) or f"no answer within {self._deadline_for.total_seconds():g} s"
            return Answer(live_status=None, trouble=Trouble.NETWORK, words=words)

    async def find(self, url: str) -> Answer:
        """Return where a stream of another platform is, if it is live; else nothing is known."""
        try:
            manifest = await self._aside.run(lambda ytdlp: ytdlp.find(url), self._deadline_for)
        except TimeoutError:
            return Answer(live_status=None, trouble=Trouble.NETWORK, words="no answer in time")
        if manifest is None:
            return Answer(live_status=None, trouble=Trouble.UPCOMING, words="not live now")
        return Answer(live_status=LiveStatus.LIVE, manifest_url=manifest)

    def close(self) -> None:
        """Let the thread end."""
        self._aside.close()


@cache
def open_resolver(proxy: str) -> YtDlpResolver:
    """Return the one resolver of this process whose way out is a proxy."""
    return YtDlpResolver(proxy)
