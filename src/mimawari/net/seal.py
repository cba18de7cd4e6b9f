"""A sign on this machine that outlives a process: whether the last line of a mail was written."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path

import structlog

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


@contextmanager
def set_seal(path: Path) -> Iterator[Seal | None]:
    """Set a seal and take it away afterwards; without one where no file can be kept."""
    try:
        number = _set(path)
    except OSError as error:
        log.warning("no seal", what="mail", result="sent without", reason=str(error))
        yield None
        return
    try:
        yield Seal(number)
    finally:
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
