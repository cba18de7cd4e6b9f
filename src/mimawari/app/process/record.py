"""A record of each running process that outlives it: what it had in hand, and its last stacks.

It is a file in the data folder, mapped into memory: noting something costs no system call, and at
the end of a process that stands still, which runs no code of ours any more, nothing has to be
written. The next process reads it. The file is locked as long as its process lives.
"""

import fcntl
import json
import mmap
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mimawari.ids import new_id
from mimawari.text import one_line

SLOT = 256
SLOTS = 256
"""So many requests are noted at a time; what comes beside them is not."""
HEAD = SLOT * SLOTS
MOST_STACKS = 64 * 1024
_THREAD = re.compile(r"(?m)^(?:Current thread|Thread) (0x[0-9a-f]+)")


class RunningRecord:
    """The record of this process."""

    def __init__(self, path: Path, name: str) -> None:
        self.id = path.name
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX)
        # Written out and not only lengthened: a disk without room for it is noticed now.
        os.write(self._file, bytes(HEAD))
        self._slots = mmap.mmap(self._file, HEAD)
        self._free = list(range(1, SLOTS))
        main = hex(threading.main_thread().ident or 0)
        self._write(0, json.dumps({"process": name, "main": main}))

    @property
    def stacks(self) -> int:
        """The file descriptor that stacks are written to, behind what is in hand."""
        return self._file

    def put(self, text: str) -> int:
        """Note something until its place is freed; 0 if there is no room for it."""
        slot = self._free.pop() if self._free else 0
        if slot:
            self._write(slot, text)
        return slot

    def free(self, slot: int) -> None:
        """Forget what was noted in a place."""
        if slot:
            self._slots[slot * SLOT] = 0
            self._free.append(slot)

    @contextmanager
    def holding(self, request: str) -> Iterator[None]:
        """Note a request as long as it is in hand."""
        slot = self.put(one_line(request, most=SLOT))
        try:
            yield
        finally:
            self.free(slot)

    def forget_stacks(self) -> None:
        """Remove stacks that were written when the loop was late and came back after all."""
        if os.lseek(self._file, 0, os.SEEK_CUR) > HEAD:
            os.ftruncate(self._file, HEAD)
            os.lseek(self._file, HEAD, os.SEEK_SET)

    def close(self) -> None:
        """Remove the record: the process ends of its own accord."""
        self._path.unlink(missing_ok=True)

    def _write(self, slot: int, text: str) -> None:
        found = text.encode("utf-8", "replace")[:SLOT].ljust(SLOT, b"\0")
        self._slots[slot * SLOT : (slot + 1) * SLOT] = found


def open_record(folder: Path, name: str) -> RunningRecord:
    """Make the record of this process; raise OSError where no file can be kept."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return RunningRecord(folder / new_id(), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A process that is gone without having ended of its own accord."""

    id: str
    process: str
    notes: tuple[str, ...]
    """Its requests in hand, and what else was noted."""
    stacks: str
    """Empty unless it was ended because its loop stood still."""
    main: int = field(repr=False)
    """How the stacks call the thread of the event loop."""

    @property
    def main_stack(self) -> str:
        """The stack of the event loop's thread, the most recent call first."""
        starts = [(found.start(), found[1]) for found in _THREAD.finditer(self.stacks)]
        ends = [start for start, _ in starts[1:]] + [len(self.stacks)]
        for (start, thread), end in zip(starts, ends, strict=True):
            if int(thread, 16) == self.main:
                return self.stacks[start:end].strip()
        return ""


def take_ended(folder: Path) -> list[tuple[Path, Ended]]:
    """List the records of processes that are gone; records of those that live are left alone."""
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        ended = _read(path)
        if ended is not None:
            found.append((path, ended))
    return found


def _read(path: Path) -> Ended | None:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        head = os.pread(opened, HEAD, 0)
        stacks = os.pread(opened, MOST_STACKS, HEAD).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(opened)
    slots = [head[at : at + SLOT].rstrip(b"\0") for at in range(0, len(head), SLOT)]
    try:
        header = json.loads(slots[0])
        process, main = str(header["process"]), int(header["main"], 16)
    except (ValueError, KeyError, TypeError, IndexError):
        # Its process died before it had written who it was.
        process, main = "unknown", 0
    return Ended(
        id=path.name,
        process=process,
        notes=tuple(one.decode("utf-8", "replace") for one in slots[1:] if one[:1] > b"\0"),
        stacks=stacks,
        main=main,
    )
