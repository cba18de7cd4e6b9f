"""What becomes of a job: the table of errors, as pure decisions."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from mimawari.errors import BadInput, Blocked, Gone, Invalid, JobError, StoreDown, Transient, Wait
from mimawari.kernel import outcome
from mimawari.kernel.context import Context
from mimawari.kernel.job import End, Job, State
from mimawari.kernel.watch import task

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


@task("t", attempts=4, backoff="5m 1h")
async def tried(job: Job, ctx: Context) -> None:
    """Do nothing."""
    del job, ctx


JOB = Job(
    id="id", kind="t", args={}, dedupe_key=None, target=None, token=7, attempt=1, crashes=0,
    enqueued_at=NOW - HOUR,
)  # fmt: skip


def back(run_at: datetime, reason: str, *, used: bool = True, blocker: str | None = None) -> End:
    return End(
        id="id", token=7, state=State.PENDING, run_at=run_at, reason=reason,
        attempt_used=used, blocked_by=blocker,
    )  # fmt: skip


def over(state: State, reason: str, page: bytes | None = None) -> End:
    return End(id="id", token=7, state=state, reason=reason, page=page)


SOON, LATER = NOW + timedelta(minutes=5), NOW + 3 * HOUR


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (Wait(LATER, "why", "limit x"), back(LATER, "why", used=False, blocker="limit x")),
        (
            StoreDown("gone\naway"),
            back(NOW + timedelta(seconds=5), "gone away", used=False, blocker="store"),
        ),
        (Gone("404"), over(State.PERMANENT_FAIL, "404")),
        (Gone(), over(State.PERMANENT_FAIL, "Gone")),
        (
            Invalid("no price", page=b"<p>"),
            over(State.FAILED, "page not understood: no price", b"<p>"),
        ),
        (Invalid("no price"), over(State.FAILED, "page not understood: no price")),
        (BadInput("give an address"), over(State.FAILED, "give an address")),
        (Blocked("site", "403"), back(SOON, "403")),
        (Blocked("site", "403", until=LATER), back(LATER, "403")),
        (Transient("busy"), back(SOON, "busy")),
        (Transient(""), back(SOON, "Transient")),
        (Transient("busy", until=LATER), back(LATER, "busy")),
        (Transient("busy", until=NOW + MINUTE), back(SOON, "busy")),
        (Transient("busy", until=NOW - HOUR), back(SOON, "busy")),
        (ZeroDivisionError("oh\nno"), back(SOON, "bug: ZeroDivisionError: oh no")),
        (ValueError(), back(SOON, "bug: ValueError: ValueError")),
        (JobError("odd"), back(SOON, "bug: JobError: odd")),
    ],
)
def test_the_error_decides(error: Exception, end: End) -> None:
    assert outcome.end_of(JOB, tried, error, NOW) == end


@pytest.mark.parametrize(
    ("attempt", "wait"),
    [(1, timedelta(minutes=5)), (2, HOUR), (3, HOUR)],
)
def test_the_last_wait_of_the_table_is_repeated(attempt: int, wait: timedelta) -> None:
    end = outcome.end_of(replace(JOB, attempt=attempt), tried, Transient("busy"), NOW)
    assert end == back(NOW + wait, "busy")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (Transient("busy"), "busy (attempt 4 of 4)"),
        (Transient("busy", until=LATER), "busy (attempt 4 of 4)"),
        (Blocked("site", "403"), "403 (attempt 4 of 4)"),
        (KeyError("x"), "bug: KeyError: 'x' (attempt 4 of 4)"),
    ],
)
def test_the_last_attempt_ends_in_the_dead_letters(error: Exception, reason: str) -> None:
    for attempt in (4, 5):
        end = outcome.end_of(replace(JOB, attempt=attempt), tried, error, NOW)
        told = reason.replace("attempt 4", f"attempt {attempt}")
        assert end == over(State.FAILED, told)


@pytest.mark.parametrize("error", [Wait(LATER, "why", "limit x"), StoreDown("away")])
def test_what_is_not_the_jobs_fault_never_ends_it(error: Exception) -> None:
    end = outcome.end_of(replace(JOB, attempt=99), tried, error, NOW)
    assert (end.state, end.attempt_used) == (State.PENDING, False)


def test_a_reason_is_one_line_of_bounded_length() -> None:
    end = outcome.end_of(JOB, tried, Transient("a\x00b\n" + "x" * 5000), NOW)
    assert end.reason is not None
    assert end.reason.startswith("a\ufffdb x")
    assert len(end.reason) == 500


@pytest.mark.parametrize(
    ("attempts", "attempt", "buried"),
    [
        (1, 1, False),
        (1, 2, False),
        (1, 3, True),
        (3, 2, False),
        (3, 3, True),
        (4, 3, False),
        (4, 4, True),
        (4, 9, True),
    ],
)
def test_a_crash_sends_a_job_back_until_it_has_died_too_often(
    attempts: int, attempt: int, buried: bool
) -> None:
    job = replace(JOB, attempt=attempt, crashes=attempt - 1)
    end = outcome.end_of_crash(job, replace(tried, attempts=attempts), NOW)
    died = over(State.FAILED, f"its process died {attempt} times")
    again = replace(back(NOW, "its process died"), crashed=True)
    assert end == (died if buried else again)


def test_a_crash_of_an_unknown_kind_buries_it() -> None:
    assert outcome.end_of_crash(JOB, None, NOW) == over(State.FAILED, "unknown kind 't'")


def test_an_unknown_kind_is_named() -> None:
    assert outcome.unknown(JOB) == over(State.FAILED, "unknown kind 't'")


@pytest.mark.parametrize(
    ("broken", "reason"),
    [("undecodable arguments: x", "undecodable arguments: x"), (None, "undecodable")],
)
def test_arguments_that_cannot_be_read_end_a_job(broken: str | None, reason: str) -> None:
    assert outcome.undecodable(replace(JOB, broken=broken)) == over(State.FAILED, reason)


def test_a_worker_that_stops_gives_its_job_back_unharmed() -> None:
    assert outcome.released(JOB, NOW) == back(NOW, "its worker stopped", used=False)
