"""What moves on a terminal: followed until somebody has seen enough."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import mimawari
from mimawari.kernel.clock import RealClock
from mimawari.store.sql import SqlStore
from mimawari.watches.streams.models import Status, StreamStatus
from tests.app.terminal import STOP_SECONDS, Terminal
from tests.media.making import Making, make_segment
from tests.ready import lay_tables
from tests.streams.cli_ground import DARK, a_monitor, a_step, keep

PROGRAM = "from mimawari.app.cli import main; main()"
SOURCE = str(Path(mimawari.__file__).parents[1])


def open_terminal(terminal: Terminal, *words: str) -> tuple[subprocess.Popen[bytes], int]:
    """Type a command on a terminal that people sit at."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "streams", *words],
        stdout=theirs,
        stderr=theirs,
        env=terminal.environment(COLUMNS="80", LINES="40", TERM="xterm", PYTHONPATH=SOURCE),
    )
    os.close(theirs)
    return process, ours


def read_until(screen: int, words: bytes, times: int = 1) -> bytes:
    """Read what is shown until some words were shown so often."""
    seen = b""
    while seen.count(words) < times:
        chunk = os.read(screen, 4096)
        assert chunk
        seen += chunk
    return seen


def test_following_shows_it_anew_each_second_until_ctrl_c(tmp_path: Path) -> None:
    async def fill() -> None:
        clock = RealClock()
        store = SqlStore(await lay_tables(tmp_path / "mimawari.db"), clock)
        step = a_step(Status.MONITORING, StreamStatus.LIVE, clock.now())
        await keep(store, a_monitor(DARK, 1, clock.now()), step, clock.now())
        await store.close()

    asyncio.run(fill())
    process, screen = open_terminal(Terminal(tmp_path), "show", DARK, "--follow")
    try:
        seen = read_until(screen, b"next look", times=3)
        process.send_signal(signal.SIGINT)
        assert process.wait(STOP_SECONDS) == 0
    finally:
        process.kill()
        os.close(screen)
    # Drawn over what was there before, not below it.
    assert b"\x1b[1A" in seen
    assert b"Traceback" not in seen


def test_a_bar_shows_how_far_a_look_has_come(tmp_path: Path) -> None:
    path = tmp_path / "a.ts"
    path.write_bytes(make_segment(Making(seconds=4.0)))
    process, screen = open_terminal(Terminal(tmp_path), "test", str(path))
    try:
        seen = read_until(screen, b"Nothing is wrong with it.")
        assert process.wait(STOP_SECONDS) == 0
    finally:
        process.kill()
        os.close(screen)
    assert b"seconds looked at" in seen
