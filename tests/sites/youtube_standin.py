"""A stand-in for YouTube behind our gate: players, watch pages and manifests, counted."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimawari.kernel.clock import VirtualClock
from mimawari.net.dial import Dialer
from mimawari.net.gate import Bounds, Gate
from mimawari.net.guard import Guard
from mimawari.net.proxies import Egress, connect_probe
from tests.net.dns import PUBLIC, Dns
from tests.net.sockets import make_certificate, open_proxy, read_body, read_head

ID = "jfKfPfyJRdk"
URL = f"https://www.youtube.com/watch?v={ID}"
MASTER = "https://manifest.googlevideo.com/api/manifest/hls_variant/expire/1800000000/index.m3u8"
LOWEST = "https://manifest.googlevideo.com/api/manifest/hls_playlist/itag/91/playlist/index.m3u8"
HOSTS = ("www.youtube.com", "manifest.googlevideo.com")
MANIFEST = (
    "#EXTM3U\n#EXT-X-INDEPENDENT-SEGMENTS\n"
    '#EXT-X-STREAM-INF:BANDWIDTH=290288,CODECS="mp4a.40.5,avc1.42c00b",RESOLUTION=256x144\n'
    f"{LOWEST}\n"
    '#EXT-X-STREAM-INF:BANDWIDTH=1300000,CODECS="mp4a.40.2,avc1.4d401f",RESOLUTION=1280x720\n'
    f"{LOWEST.replace('/91/', '/95/')}\n"
)


def tell_video(**details: Any) -> dict[str, Any]:
    """Write what a player is told of a video that may be watched."""
    return {
        "playabilityStatus": {"status": "OK", "playableInEmbed": True},
        "videoDetails": {"videoId": ID, "title": "A stream", "author": "Somebody", **details},
    }


def tell_live(url: str | None = MASTER) -> dict[str, Any]:
    """Write what a player is told of a video that is live."""
    told = tell_video(isLive=True, isLiveContent=True)
    return told | ({"streamingData": {"hlsManifestUrl": url}} if url else {})


def tell_refusal(status: str, reason: str, subreason: str = "", **details: Any) -> dict[str, Any]:
    """Write what a player is told that may not watch."""
    told = tell_video(**details) if details else {}
    said = {"reason": {"simpleText": reason}, "subreason": {"simpleText": subreason}}
    screen = {"playerErrorMessageRenderer": said if subreason else {"reason": said["reason"]}}
    refusal = {"status": status, "reason": reason, "errorScreen": screen}
    return told | {"playabilityStatus": refusal}


def tell_schedule(reason: str, at: str, **details: Any) -> dict[str, Any]:
    """Write what a player is told of a video that begins later."""
    slate = {"liveStreamOfflineSlateRenderer": {"scheduledStartTime": at}}
    told = tell_refusal("LIVE_STREAM_OFFLINE", reason, isUpcoming=True, **details)
    told["playabilityStatus"]["liveStreamability"] = {
        "liveStreamabilityRenderer": {"videoId": ID, "offlineSlate": slate}
    }
    return told


def write_watch_page() -> bytes:
    """Write a watch page as streamlink reads it."""
    initial = tell_video(isLive=True) | {
        "microformat": {"playerMicroformatRenderer": {"category": "Music"}}
    }
    script = f"var ytInitialPlayerResponse = {json.dumps(initial)};var meta = 1;"
    return f"<html><script>{script}</script></html>".encode()


@dataclass
class StandIn:
    """What players are told, by their name; `None` leaves a player waiting for ever."""

    proxy: str = ""
    told: dict[str, bytes | None] = field(default_factory=dict)
    manifest: bytes = MANIFEST.encode()
    status: int = 200
    players: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    waiting: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    def tell(self, player: str, told: Any) -> None:
        """Decide what a player is told from now on."""
        self.told[player] = told if isinstance(told, bytes) else json.dumps(told).encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        with closing(writer), suppress(OSError, asyncio.IncompleteReadError):
            head = await read_head(reader)
            if not head:
                return
            path = head.split()[1].decode().partition("?")[0]
            body = self._reply(path, await read_body(reader, head))
            if body is None:
                self.waiting.release()
                await reader.read()
                return
            status = self.status if path.endswith("/player") else 200
            start = f"HTTP/1.1 {status} OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n"
            writer.write(start.encode() + b"\r\n" + body)
            await writer.drain()

    def _reply(self, path: str, asked: bytes) -> bytes | None:
        self.asked.append(path)
        if path == "/youtubei/v1/player":
            name = str(json.loads(asked)["context"]["client"]["clientName"])
            self.players.append(name)
            return self.told[name]
        return write_watch_page() if path == "/watch" else self.manifest


@asynccontextmanager
async def open_standin(
    folder: Path, where: str = PUBLIC, bounds: Bounds | None = None
) -> AsyncIterator[StandIn]:
    """Run a stand-in that the names of YouTube lead to, through a gate with its guard."""
    standin = StandIn()
    tls, _ = make_certificate(folder, HOSTS[0])
    async with _listening(standin, tls) as port, open_proxy(port) as onward:
        egress = Egress(
            [f"http://127.0.0.1:{onward.port}"], VirtualClock(), connect_probe("known.example")
        )
        dns = Dns({host: [[where]] for host in HOSTS} if where else {})
        async with Gate(Dialer(Guard(resolve=dns), egress), bounds) as gate:
            standin.proxy = gate.address
            yield standin


@asynccontextmanager
async def _listening(standin: StandIn, tls: ssl.SSLContext) -> AsyncIterator[int]:
    server = await asyncio.start_server(standin.serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def is_clean(words: str | None) -> bool:
    """Tell whether words are fit for a line of the log."""
    return words is None or bool(re.fullmatch(r"[^\x00-\x1f\x7f]{0,300}", words))
