"""The world of the part `streams_watch`: live streams on loopback, in a process of its own."""

import asyncio
import sys
from datetime import timedelta

import uvicorn

from mimawari.app.http.listening import listen
from mimawari.kernel.clock import RealClock
from mimawari.sim.sites.webhooks import Hooks
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.site import Live
from mimawari.sim.world import World

SEGMENT_SECONDS = 2.0
BEHIND = timedelta(minutes=5)


def video_of(number: int) -> str:
    """Name a stream."""
    return f"bench{number:06d}"


def make(streams: int) -> World:
    """Make a world of healthy streams, each begun at another moment."""
    clock = RealClock()
    live = Live(clock, 1, has_catalogue=False)
    since = clock.now() - BEHIND
    for number in range(streams):
        shift = timedelta(seconds=SEGMENT_SECONDS * number / streams)
        live.put(
            Programme(
                video_id=video_of(number),
                title=f"stream {number}",
                starts_at=since - shift,
                segment_seconds=SEGMENT_SECONDS,
            )
        )
    return World(clock, (live, Hooks(clock)), 1)


async def serve(streams: int) -> None:
    """Serve the world on a free port, and print it."""
    taken = listen("127.0.0.1", 0)
    print(taken.getsockname()[1], flush=True)
    config = uvicorn.Config(make(streams), log_config=None, access_log=False, server_header=False)
    await uvicorn.Server(config).serve([taken])


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
