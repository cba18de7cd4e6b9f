"""How tests watch simulated streams: by the resolver's address, as any player does."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2

from mimawari.kernel.clock import VirtualClock
from mimawari.media.playlist import Master, Playlist, Segment, choose_variant, parse_playlist
from mimawari.media.segment import Findings, analyse
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.site import Live
from mimawari.sim.world import World

VIDEO = "live-stream"
STARTS_AT = datetime(2026, 1, 1, tzinfo=UTC)
PROGRAMME = Programme(video_id=VIDEO, title="見回り生放送", starts_at=STARTS_AT)


@dataclass(slots=True)
class Viewer:
    """Somebody who watches one stream."""

    http: httpx2.AsyncClient
    clock: VirtualClock
    live: Live
    manifest_url: str = ""

    async def wait(self, seconds: float) -> None:
        """Let time pass until so many seconds after the start."""
        until_at = STARTS_AT + timedelta(seconds=seconds)
        await self.clock.advance(until_at - self.clock.now())

    async def resolve(self, video_id: str = VIDEO) -> Any:
        """Ask how a stream stands, and keep its address."""
        said = (await self.http.get("/resolve", params={"v": video_id})).json()
        self.manifest_url = said.get("manifest_url") or self.manifest_url
        return said

    async def fetch_list(self, quality: str = "lowest") -> httpx2.Response:
        """Fetch the list of a quality by the address that was kept, or what comes in its place."""
        if not self.manifest_url:
            await self.resolve()
        reply = await self.http.get(self.manifest_url)
        if not reply.is_success or not reply.content.startswith(b"#EXTM3U"):
            return reply
        master = parse_playlist(reply.content, str(reply.url))
        assert isinstance(master, Master)
        return await self.http.get(choose_variant(master, quality).url)

    async def read_list(self, quality: str = "lowest") -> Playlist:
        """Read the list of a quality."""
        reply = await self.fetch_list(quality)
        found = parse_playlist(reply.content, str(reply.url))
        assert isinstance(found, Playlist)
        return found

    async def fetch(self, segment: Segment) -> httpx2.Response:
        """Fetch a segment."""
        return await self.http.get(segment.piece.url)

    async def look(self, segment: Segment) -> Findings:
        """Look and listen into a segment."""
        header = await self.http.get(segment.header.url) if segment.header else None
        body = (await self.fetch(segment)).content
        return analyse(body, header.content if header else b"")


@asynccontextmanager
async def watching(programme: Programme) -> AsyncIterator[Viewer]:
    """Watch a programme in a world of its own, from the moment it starts."""
    clock = VirtualClock(STARTS_AT)
    live = Live(clock, 1, has_catalogue=False)
    live.put(programme)
    inside = httpx2.ASGITransport(app=World(clock, (live,), 1))
    async with httpx2.AsyncClient(transport=inside, base_url="http://world.test") as http:
        yield Viewer(http, clock, live)


def told(live: Live, what: str) -> Mapping[str, Any]:
    """Return what the truth says of the only thing of its kind."""
    [programme] = live.truth({"v": VIDEO})["programmes"]
    everything = (*programme["shots"], *programme["upsets"])
    found: list[Mapping[str, Any]] = [one for one in everything if one["what"] == what]
    assert len(found) == 1
    return found[0]
