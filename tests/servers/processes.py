"""Process trees, and the guard that ends a server when the one who asked for it is gone."""

import contextlib
import ctypes
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

POLL_SECONDS = 0.01
Table = dict[int, tuple[str, int]]
"""State and parent of every process by its id."""


def table() -> Table:
    """Look at every process on the machine."""
    table = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        # A process may end between the listing and the reading.
        with contextlib.suppress(OSError):
            # The name, in parentheses, may itself hold spaces and parentheses.
            fields = path.read_text().rpartition(")")[2].split()
            state, parent, threads = fields[0], int(fields[1]), int(fields[17])
            # Its first thread may have ended while others still hold the sockets.
            dying = state == "Z" and threads > 1
            table[int(path.parent.name)] = ("R" if dying else state, parent)
    return table


def tree(root: int) -> list[int]:
    """Return the process and all its living descendants, parents first."""
    parents = {pid: parent for pid, (state, parent) in table().items() if state not in "ZX"}
    found = [root] if root in parents else []
    for pid in found:
        found.extend(child for child, parent in parents.items() if parent == pid)
    return found


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Signal each process that still exists."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for(pids: list[int], is_so: Callable[[int, Table], bool]) -> None:
    """Wait until something is so of each process."""
    while True:
        now = table()
        if all(is_so(pid, now) for pid in pids):
            return
        time.sleep(POLL_SECONDS)


def is_gone(pid: int, now: Table) -> bool:
    """Say whether a process has ended."""
    return pid not in now or now[pid][0] in "ZX"


def is_frozen(pid: int, now: Table) -> bool:
    """Say whether a process does nothing any more."""
    # Who has just begun a program (vfork) waits in the kernel until the child is that program,
    # and is not stopped before: with the child stopped first, never.
    is_held = pid in now and now[pid][0] == "D" and ("T", pid) in now.values()
    return is_gone(pid, now) or now[pid][0] == "T" or is_held


def freeze_tree(root: int) -> list[int]:
    """Stop the process and all its descendants and return them."""
    frozen: list[int] = []
    # A process that was forked while its parent was being stopped is found in the next round.
    while missing := [pid for pid in tree(root) if pid not in frozen]:
        send(missing, signal.SIGSTOP)
        wait_for(missing, is_frozen)
        frozen += missing
    return frozen


def kill_tree(root: int) -> None:
    """Kill the process and all its descendants at one moment and wait until they are gone."""
    pids = freeze_tree(root)
    send(pids, signal.SIGKILL)
    wait_for(pids, is_gone)


def _release_shared_memory(folder: Path) -> None:
    """Free the System V segment that a killed PostgreSQL server left in the kernel."""
    with contextlib.suppress(FileNotFoundError):
        lines = (folder / "data" / "postmaster.pid").read_text().splitlines()
        if len(lines) > 6:
            ipc_rmid = 0
            ctypes.CDLL(None).shmctl(int(lines[6].split()[1]), ipc_rmid, None)


def guard(folder: Path) -> None:
    """Read the server's process ids until told to end or the writer dies, then clean up."""
    pid = 0
    for line in sys.stdin:
        if line == "end\n":
            break
        pid = int(line)
    if pid:
        kill_tree(pid)
    _release_shared_memory(folder)
    shutil.rmtree(folder)


if __name__ == "__main__":
    guard(Path(sys.argv[1]))
