"""Starts a process in a terminal again after its guard has ended it, as systemd does elsewhere."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from mimawari import show

SIGNALLED = 128
"""What a shell adds to the number of the signal that ended a process."""
KILL_SECONDS = 28
"""On a starved machine code that holds the interpreter's lock outlives every guard of its own."""


def run_again(work: Callable[[], None]) -> None:
    """Do the work here or, in a terminal, in a child that is started again on that one status."""
    if not sys.stderr.isatty():
        work()
        return
    while (child := _start()) is not None:
        number, is_stopping = _wait(child)
        if number != signal.SIGVTALRM or is_stopping:
            return
        show.complaints.print("The process stood still and was ended; it starts again.")
    work()


def _start() -> int | None:
    """Return the child's id, or None in the child itself."""
    sys.stdout.flush()
    sys.stderr.flush()
    return os.fork() or None


def _wait(child: int) -> tuple[int, bool]:
    """Pass signals on to the child, and return the one that ended it; exit as it exited if none."""
    is_stopping = False

    def pass_on(number: int, _frame: FrameType | None) -> None:
        nonlocal is_stopping
        is_stopping = True
        os.kill(child, signal.SIGKILL if number == signal.SIGALRM else number)
        signal.alarm(KILL_SECONDS)

    before: dict[int, Any] = {
        number: signal.signal(number, pass_on)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
    }
    _, status = os.waitpid(child, 0)
    signal.alarm(0)
    for number, handler in before.items():
        signal.signal(number, handler)
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
    if (number := os.WTERMSIG(status)) != signal.SIGVTALRM or is_stopping:
        sys.exit(SIGNALLED + number)
    return number, is_stopping
