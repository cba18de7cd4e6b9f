"""Jobs at work in this process, and the notes by which the next process knows of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

from mimawari.kernel.deliverer import Notes
from mimawari.kernel.job import Job
from mimawari.kernel.watch import Task

MOST_WAIT = timedelta(days=1)
"""How long a job that must run alone may wait for others; their own timeouts end them before."""
_CLAIMED, _BEGUN = "claimed ", "begun "


@dataclass(slots=True, eq=False)
class Running:
    """A job at work in this process."""

    job: Job
    task: Task
    renew_at: datetime
    deadline: datetime
    work: asyncio.Task[None] | None = None
    cancelled_for: str | None = None


class Company:
    """The jobs at work in one process, whichever of its workers runs them."""

    def __init__(self) -> None:
        self._count = 0
        self._alone = asyncio.Lock()
        self._left = asyncio.Event()

    def must_wait(self, job: Job) -> bool:
        """Say whether a job may have to wait: to be alone, or for one that is."""
        return job.stops > 0 or self._alone.locked()

    @asynccontextmanager
    async def joined(self, job: Job) -> AsyncIterator[None]:
        """Run a job beside others; one that a process stood still over runs with none beside it."""
        async with self._alone:
            while job.stops and self._count:
                self._left.clear()
                await self._left.wait()
            if job.stops:
                with self._counted():
                    yield
                return
        with self._counted():
            yield

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self._left.set()


class RunningNotes:
    """Notes the jobs of a worker, where notes are kept: first as claimed, then as begun."""

    def __init__(self, notes: Notes | None) -> None:
        self._notes = notes
        self._slots: dict[str, int] = {}

    def claimed(self, run: Running) -> None:
        """Note a job until its work is over, however it ends."""
        if self._notes is not None and run.work is not None:
            self._put(_CLAIMED, run.job)
            run.work.add_done_callback(lambda _: self._free(run.job))

    def begun(self, run: Running) -> None:
        """Note that a job has begun."""
        if self._notes is not None:
            self._free(run.job)
            self._put(_BEGUN, run.job)

    def _put(self, word: str, job: Job) -> None:
        if self._notes is not None:
            self._slots[_name(job)] = self._notes.put(f"{word}{_name(job)}")

    def _free(self, job: Job) -> None:
        if self._notes is not None:
            self._notes.free(self._slots.pop(_name(job), 0))


@dataclass(frozen=True, slots=True)
class Noted:
    """A job that a process had in hand."""

    id: str
    token: int
    has_begun: bool


def read_running(note: str) -> Noted | None:
    """Read which job a note is about; None if it is about none."""
    for word in (_CLAIMED, _BEGUN):
        job_id, _, token = note.removeprefix(word).partition(" ")
        if note.startswith(word) and token.isdecimal():
            return Noted(job_id, int(token), word == _BEGUN)
    return None


def _name(job: Job) -> str:
    return f"{job.id} {job.token}"
