"""Counts what fails in a row, and forgets it when it goes well again, at no cost where all does."""

from dataclasses import dataclass, field

from mimawari.errors import Blocked, StoreDown
from mimawari.kernel.job import End, Job, State
from mimawari.kernel.ports import Store
from mimawari.kernel.values import Failed


def subject_of(job: Job) -> str:
    """Name what a job's failure is counted against: its target or, without one, its kind."""
    return job.target or job.kind


@dataclass(slots=True)
class Failing:
    """What a worker knows of streaks, and what it has not said of them yet."""

    store: Store
    known: set[str] = field(default_factory=set)
    """The subjects that have a streak, as far as was heard."""
    _has_heard: bool = False
    _failed: list[Failed] = field(default_factory=list)
    _ended: set[str] = field(default_factory=set)

    async def hear(self) -> None:
        """Learn of streaks that other processes have begun."""
        self.known |= {streak.subject for streak in await self.store.streaks.list()}
        self._has_heard = True

    def note(self, job: Job, end: End | None, error: Exception | None) -> None:
        """Note how an attempt ended; one without an end of its own was ended by its commit."""
        if end is None or end.state in {State.DONE, State.PERMANENT_FAIL}:
            # A page that is said to be gone is an answer like any other.
            if subject_of(job) in self.known:
                self._ended.add(subject_of(job))
        elif is_failure(end, error):
            self._failed.append(failed(job, end))

    async def say(self) -> None:
        """Tell the store what was noted; what it does not hear now it is told the next time."""
        if not self._has_heard:
            await self.hear()
        ended, self._ended = self._ended, set()
        counted, self._failed = self._failed, []
        try:
            await self.store.streaks.end(ended)
            self.known -= ended
            await self.store.streaks.count(counted)
        except StoreDown:
            self._ended |= ended
            self._failed = counted + self._failed
            raise
        self.known |= {one.subject for one in counted}


def is_failure(end: End, error: Exception | None) -> bool:
    """Say whether an end counts: a block does so against its site alone, until it is the last."""
    if end.state == State.PENDING:
        return end.attempt_used and not isinstance(error, Blocked)
    return end.state == State.FAILED


def failed(job: Job, end: End) -> Failed:
    """Say what is counted of an attempt that failed."""
    return Failed(
        subject=subject_of(job),
        kind=job.kind,
        job_id=job.id,
        reason=end.reason or "",
        is_dead=end.state == State.FAILED,
    )
