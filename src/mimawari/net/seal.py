"""A sign on this machine that outlives a process: whether the last line of a mail was written."""

import fcntl
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

import structlog

from mimawari.errors import Transient
from mimawari.net.threads import BoundedThreads

T = TypeVar("T")

FILES_FOR = timedelta(seconds=10)
MOST_STUCK = 4
"""So many calls may hang at a time in a disk that does not answer; further ones wait and fail."""
_FILES = BoundedThreads("mimawari-seal", MOST_STUCK)
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_WHOLE, _BROKEN = b"-", b"+"

log = structlog.get_logger(component="mail")


class Found(StrEnum):
    """What a seal tells about the process that set it."""

    NOTHING = "nothing"
    """It was set on another machine, before this one was started, or nowhere."""
    HELD = "held"
    """Its process lives."""
    WHOLE = "whole"
    """Its process died before it wrote the last line: nothing was delivered."""
    BROKEN = "broken"
    """Its process died after it had set about the last line."""


class Seal:
    """Locked as long as its process lives, and broken just before the last line is written."""

    def __init__(self, number: int) -> None:
        self._number = number

    def break_open(self) -> None:
        """Leave a sign that the last line goes out now; the system keeps it though we die."""
        os.pwrite(self._number, _BROKEN, 0)


@asynccontextmanager
async def set_seal(path: Path) -> AsyncIterator[Seal | None]:
    """Set a seal and take it away afterwards; without one where no file can be kept."""
    try:
        number = await beside_the_loop(lambda: _set(path))
    except OSError as error:
        log.warning("no seal", what="mail", result="sent without", reason=str(error))
        yield None
        return
    try:
        yield Seal(number)
    finally:
        try:
            await beside_the_loop(lambda: _take_away(path, number))
        except (OSError, Transient) as error:
            # The mail is on its way or not, whatever becomes of the file.
            log.warning("a seal is left", what="mail", reason=str(error))


async def beside_the_loop(call: Callable[[], T], within: timedelta = FILES_FOR) -> T:
    """Run a call on files in a thread; raise Transient if the disk does not answer in time."""
    try:
        return await _FILES.run(call, within)
    except TimeoutError as error:
        raise Transient(
            f"the data folder did not answer within {within.total_seconds():g} s; check its disk"
        ) from error


def _take_away(path: Path, number: int) -> None:
    path.unlink(missing_ok=True)
    os.close(number)


def _set(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        # Nobody looks for it yet: that the mail is being ended is kept only after this.
        fcntl.flock(number, fcntl.LOCK_EX)
        os.write(number, _WHOLE + _read_boot())
    except OSError:
        path.unlink(missing_ok=True)
        os.close(number)
        raise
    return number


def look_at_seal(path: Path) -> Found:
    """Tell what is known of the process that set a seal."""
    try:
        number = os.open(path, os.O_RDWR)
    except OSError:
        return Found.NOTHING
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        text = os.read(number, 100)
    except BlockingIOError:
        return Found.HELD
    finally:
        os.close(number)
    # What was written before the machine lost its power may be less than what was done.
    if not _read_boot() or text[1:] != _read_boot():
        return Found.NOTHING
    return Found.BROKEN if text[:1] == _BROKEN else Found.WHOLE


def remove_seals(folder: Path, name: str) -> None:
    """Remove what dead processes have left of a mail's seals."""
    for path in folder.glob(f"{name}.*"):
        if look_at_seal(path) is not Found.HELD:
            path.unlink(missing_ok=True)


def _read_boot() -> bytes:
    with suppress(OSError):
        return _BOOT.read_bytes().strip()
    return b""
