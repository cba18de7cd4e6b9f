"""Streams that stall, or lack a segment: what began before is told as it was, and in time."""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from mimawari.errors import Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.media.findings import Findings, Look
from mimawari.media.playlist import Master, Piece, Playlist, parse_playlist
from mimawari.media.segment import analyse
from mimawari.sim.sites.youtube.playlists import write_list
from mimawari.sim.sites.youtube.programme import Programme, Shot, Upset
from mimawari.sim.sites.youtube.segments import make_segment
from mimawari.sites.hls import Refused
from mimawari.sites.youtube import Answer, LiveStatus
from mimawari.watches.streams.checking import check
from mimawari.watches.streams.models import Config, EventType, Monitor, Notice, State, Status

MANIFEST = "http://live.test/144p.m3u8"
BLACK = Shot(what="black", start=30.0, end=60.0)
FRAME = timedelta(seconds=0.04)


class Stage:
    """One programme from its start on, for whoever looks at it."""

    def __init__(self, *upsets: Upset, is_dated: bool = True) -> None:
        self.clock = VirtualClock()
        self.programme = Programme(
            video_id="stage",
            title="stage",
            starts_at=self.clock.now() - timedelta(seconds=10),
            seconds=80.0,
            shots=(BLACK,),
            upsets=upsets,
            is_dated=is_dated,
        )

    def now(self) -> datetime:
        return self.clock.now()

    async def ask(self, stream_url: str) -> Answer | Wait:
        del stream_url
        return Answer(live_status=LiveStatus.LIVE, manifest_url=MANIFEST)

    async def fetch_playlist(self, url: str) -> Playlist | Master:
        on_clock = (self.now() - self.programme.starts_at).total_seconds()
        return parse_playlist(write_list(self.programme, 144, "", on_clock).encode(), url)

    async def look(self, piece: Piece, header: Piece | None, look: Look) -> Findings:
        del header
        named = re.search(r"/([0-9]+)\.ts", piece.url)
        assert named is not None
        if self.programme.is_upset(int(named[1]), "missing"):
            raise Refused("segment", 404)
        return analyse(make_segment(self.programme, int(named[1]), 144), b"", look)

    async def play(self, config: Config) -> Sequence[Notice]:
        """Look at it to its end, and return all that there is to tell."""
        monitor = Monitor(
            id="mon-1", stream_url="https://www.youtube.com/watch?v=stage", callback_url="",
            config=config, metadata={}, status=Status.INITIALIZING, created_at=self.now(),
        )  # fmt: skip
        state, notices = State(), list[Notice]()
        while True:
            step = await check(monitor, state, self)
            notices += step.notices
            if step.is_end:
                return notices
            monitor, state = replace(monitor, status=step.status), step.state
            await self.clock.advance(step.next_at - self.now())


@pytest.mark.parametrize("is_dated", [True, False])
async def test_a_black_out_that_stalls_began_when_it_began(*, is_dated: bool) -> None:
    stage = Stage(Upset(what="stall", start=40.0, end=75.0), is_dated=is_dated)
    notices = await stage.play(Config(check_interval_sec=2, blackout_threshold_sec=20))
    alert, over = [one for one in notices if "blackout" in one.type]
    start_at = stage.programme.starts_at + timedelta(seconds=BLACK.start)
    late = timedelta(seconds=0 if is_dated else stage.programme.segment_seconds)
    assert abs(alert.data["started_at"] - start_at) <= FRAME + late
    assert over.data["started_at"] == alert.data["started_at"]
    assert over.data["total_duration_sec"] == pytest.approx(30.0, abs=0.04)


async def test_nothing_waits_any_longer_for_a_segment_that_is_given_up() -> None:
    stage = Stage(Upset(what="missing", start=40.0, end=42.0))
    notices = await stage.play(Config(check_interval_sec=2, blackout_threshold_sec=15))
    alert = next(one for one in notices if one.type is EventType.BLACKOUT)
    # It is looked for at 42 seconds, and once more after 2, 4 and 8; 16 seconds are enough.
    assert alert.at == stage.programme.starts_at + timedelta(seconds=42 + 2 + 4 + 8)
    assert alert.data["duration_sec"] == pytest.approx(16.0, abs=0.04)
    assert [one.type for one in notices if one.type is EventType.SEGMENT_ERROR] == []


async def test_segments_that_are_all_missing_are_told_after_a_minute() -> None:
    stage = Stage(
        Upset(what="missing", start=20.0, end=80.0), Upset(what="stall", start=79.0, end=200.0)
    )
    notices = await stage.play(Config(check_interval_sec=2))
    [error] = [one for one in notices if one.type is EventType.SEGMENT_ERROR]
    assert error.data["reason"] == "segment"
    first_at = stage.programme.starts_at + timedelta(seconds=22)
    assert error.data["started_at"] == first_at
    assert error.at - first_at == timedelta(minutes=1)
