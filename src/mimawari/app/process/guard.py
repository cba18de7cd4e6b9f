"""Ends a process whose event loop stands still, and one that does not stop when it is asked to.

Two guards watch the loop. Against code that computes without end, also where it holds the
interpreter's lock, a timer of CPU time that the loop puts back every second: it sends SIGVTALRM,
whose handler in C writes the stacks of all threads before the signal ends the process. Against a
call that blocks, a thread that counts its own ticks between two of the loop's. Neither counts time
in which the process was stopped, suspended or waited for a CPU. Whoever started the process starts
it again: systemd, a container, or in a terminal `restarting`.
"""

import asyncio
import ctypes
import faulthandler
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread, get_native_id

from mimawari.app.process.record import RunningRecord
from mimawari.kernel.clock import boot_ticks

TICK_SECONDS = 1.0
NOT_STOPPED = 3
"""The exit status of a process that was asked to stop and did not in time."""
STOPS = (signal.SIGTERM, signal.SIGINT)
FIRST_PROCESS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the guard lets things take."""

    cpu_seconds: float = 10.0
    ticks: float = 10.0
    stop_seconds: float = 27.0
    """From the signal on; what started the process kills it after 30 s."""
    exit_seconds: float = 2.0
    """From when all was stopped; executors would wait for their threads for ever."""


class ProcessGuard:
    """Watches over one process from its main thread; made before its loop runs."""

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._errors = _open_errors()
        self._reader, self._writer = socket.socketpair()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._on_stop: Callable[[], None] = _nothing
        self._record: RunningRecord | None = None
        self._beating: asyncio.TimerHandle | None = None
        self._is_armed = self._is_over = self._is_stopping = False
        self._exit_at: float | None = None
        self._beats = self._seen = 0
        self._silent = 0.0
        self._delayed = 0.0
        self._main = get_native_id()

    def start(self) -> None:
        """Listen for signals from now on."""
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        signal.set_wakeup_fd(self._writer.fileno(), warn_on_full_buffer=False)
        for number in STOPS:
            signal.signal(number, _note)
        self._reader.settimeout(TICK_SECONDS)
        Thread(target=self._watch, name="mimawari-guard", daemon=True).start()

    def attach(self, on_stop: Callable[[], None], record: RunningRecord | None = None) -> None:
        """Watch the running loop from now on, and let it know when the process is to stop."""
        self._loop, self._on_stop, self._record = asyncio.get_running_loop(), on_stop, record
        if self._is_stopping:
            on_stop()
        if os.getpid() == FIRST_PROCESS:
            # The first process of a container outlives signals that it does not handle itself.
            libc = ctypes.CDLL(None)
            libc.signal(signal.SIGVTALRM, ctypes.cast(libc._exit, ctypes.c_void_p))  # noqa: SLF001
        faulthandler.register(signal.SIGVTALRM, file=self._errors, all_threads=True, chain=True)
        if record is not None:
            faulthandler.register(signal.SIGPROF, file=record.stacks, all_threads=True)
        self._is_armed = True
        self._beat()

    def detach(self) -> None:
        """Watch the loop no more: all was stopped, and the process exits in a moment."""
        self._is_armed = False
        if self._beating is not None:
            self._beating.cancel()
        for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):
            signal.setitimer(timer, 0)
        self._exit_at = boot_ticks() + self._patience.exit_seconds

    def stop(self) -> None:
        """Let the process exit by itself."""
        self._is_over = True

    def _beat(self) -> None:
        """Show that the loop lives: put the timers back, and come again."""
        self._beats += 1
        seconds = self._patience.cpu_seconds
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        if self._record is not None:
            # A little earlier, so that the record has the stacks before the process ends.
            signal.setitimer(signal.ITIMER_PROF, seconds * 0.9)
            self._record.forget_stacks()
        self._beating = asyncio.get_running_loop().call_later(TICK_SECONDS, self._beat)

    def _watch(self) -> None:
        while not self._is_over:
            try:
                numbers = self._reader.recv(64)
            except TimeoutError:
                numbers = b""
                self._tick()
            if not self._is_stopping and set(numbers) & {*STOPS}:
                self._ask_to_stop()
            if self._exit_at is not None and boot_ticks() > self._exit_at:
                self._exit()

    def _ask_to_stop(self) -> None:
        self._is_stopping = True
        self._exit_at = min(
            boot_ticks() + self._patience.stop_seconds, self._exit_at or float("inf")
        )
        # The loop may not run yet, or not any more.
        with suppress(RuntimeError):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._on_stop)

    def _tick(self) -> None:
        """Count a second without a sign of the loop, less what its thread waited for a CPU."""
        waited = _read_delay(self._main)
        passed, self._delayed = waited - self._delayed, waited
        if not self._is_armed or self._beats != self._seen:
            self._seen, self._silent = self._beats, 0.0
            return
        self._silent += TICK_SECONDS - min(max(passed, 0.0), TICK_SECONDS)
        if self._silent >= self._patience.ticks:
            self._end_blocked()

    def _end_blocked(self) -> None:
        """End the process as the timer does, with its stacks."""
        if self._record is not None:
            faulthandler.dump_traceback(self._record.stacks, all_threads=True)
        os.kill(os.getpid(), signal.SIGVTALRM)
        self._reader.settimeout(None)

    def _exit(self) -> None:
        """Exit whatever threads there are: with what was asked for if all was stopped."""
        if self._is_armed or self._loop is None:
            faulthandler.dump_traceback(self._errors, all_threads=True)
            os._exit(NOT_STOPPED)
        os._exit(0 if self._is_stopping else 1)


@contextmanager
def guarding(patience: Patience | None = None) -> Iterator[ProcessGuard]:
    """Guard this process as long as the block lasts."""
    guard = ProcessGuard(patience or Patience())
    guard.start()
    try:
        yield guard
    finally:
        guard.stop()


def _nothing() -> None:
    pass


def _note(number: int, frame: object) -> None:
    """Accept a signal, which the guard's thread reads from the wake-up socket."""


def _open_errors() -> int:
    """Open standard error anew so that writing never blocks, where the system lets us."""
    mode = os.fstat(sys.__stderr__.fileno() if sys.__stderr__ else 2).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with suppress(OSError):
            return os.open("/proc/self/fd/2", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
    return 2


def _read_delay(thread: int) -> float:
    """Return how long a thread of ours has waited for a CPU; 0 where the system does not say."""
    try:
        fields = Path(f"/proc/self/task/{thread}/schedstat").read_text(encoding="ascii").split()
        return int(fields[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
