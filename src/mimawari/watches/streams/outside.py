"""What a check asks of the world outside, and who answers it."""

from datetime import datetime
from typing import Protocol

from mimawari.errors import JobError, Wait
from mimawari.kernel.context import Context
from mimawari.media.aside import analyse
from mimawari.media.findings import Findings, Look
from mimawari.media.playlist import Master, Piece, Playlist
from mimawari.sites import hls, youtube
from mimawari.sites.youtube import Answer, Trouble
from mimawari.text import one_line
from mimawari.watches.streams import urls

CHECK = "streams.check"
"""The kind of job that checks, and the limit of how often."""
RESOLVE = "streams.resolve"
"""The limit of how often it is asked whether a video is live."""


class Outside(Protocol):
    """The world outside, as a check sees it."""

    def now(self) -> datetime:
        """Tell the time."""
        ...

    async def ask(self, stream_url: str) -> Answer | Wait:
        """Ask how a stream stands; or say until when nobody may ask."""
        ...

    async def fetch_playlist(self, url: str) -> Playlist | Master:
        """Fetch a playlist."""
        ...

    async def look(self, piece: Piece, header: Piece | None, look: Look) -> Findings:
        """Fetch a segment, and look and listen into it."""
        ...


class Web:
    """The world outside by way of a job's leave to ask it."""

    def __init__(self, ctx: Context, caller: str) -> None:
        self._ctx = ctx
        self._caller = caller
        self._headers: dict[Piece, bytes] = {}

    def now(self) -> datetime:
        """Tell the time."""
        return self._ctx.clock.now()

    async def ask(self, stream_url: str) -> Answer | Wait:
        """Ask how a stream stands; or say until when nobody may ask."""
        if urls.platform_of(stream_url) == "hls":
            return Answer(live_status=youtube.LiveStatus.LIVE, manifest_url=stream_url)
        # Where a breaker keeps everybody away no leave is used up.
        wait = await self._ctx.barred(youtube.SITE.name)
        wait = wait or await self._ctx.try_limit(RESOLVE, caller=self._caller)
        if wait is not None:
            return wait
        try:
            return await self._resolve(stream_url)
        except Wait as error:
            return error
        except JobError as error:
            # A resolver that cannot be asked says nothing about the video.
            words = one_line(str(error), most=300)
            return Answer(live_status=None, trouble=Trouble.NETWORK, words=words)

    async def _resolve(self, stream_url: str) -> Answer:
        base_url = self._ctx.settings.streams_resolver_url
        if base_url:
            return await self._fetch_answer(base_url, urls.name_of(stream_url))
        resolver = youtube.open_resolver(self._ctx.http.gate)
        is_video = urls.platform_of(stream_url) == "youtube"
        dialed = self._ctx.http.dialed
        try:
            return await (resolver.resolve(stream_url) if is_video else resolver.find(stream_url))
        finally:
            # Where no connection came about, nobody was asked.
            if self._ctx.http.dialed == dialed:
                await self._ctx.give_back()

    async def _fetch_answer(self, base_url: str, name: str) -> Answer:
        try:
            return await youtube.fetch_answer(self._ctx.http, base_url, name)
        except Wait:
            raise
        except JobError as error:
            await self._ctx.failed(youtube.SITE.name, error)
            raise

    async def fetch_playlist(self, url: str) -> Playlist | Master:
        """Fetch a playlist."""
        return await hls.fetch_playlist(self._ctx.http, url)

    async def look(self, piece: Piece, header: Piece | None, look: Look) -> Findings:
        """Fetch a segment, and look and listen into it."""
        before = await self._header(header) if header is not None else b""
        body = await hls.fetch_piece(self._ctx.http, piece)
        found: Findings = await self._ctx.http.look(analyse, body, before, look)
        return found

    async def _header(self, piece: Piece) -> bytes:
        # The header of fMP4 is the same for many segments.
        if piece not in self._headers:
            self._headers[piece] = await hls.fetch_piece(self._ctx.http, piece)
        return self._headers[piece]
