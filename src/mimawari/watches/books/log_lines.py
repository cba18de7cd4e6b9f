"""What a run tells the log, in the words that its operators look for."""

from mimawari.watches.books.hashing import short_hash
from mimawari.watches.books.models import BookJob, Reading, Returned, StopReason

GIVEN_UP = "Stopped: the job was disabled"


def page_line(job: BookJob, reading: Reading, returned: Returned) -> str:
    """Tell of a page; `reading` is where the run stood before it."""
    return (
        f"[google-books][{job.name}] Page {reading.page + 1}: startIndex={reading.start_index},"
        f" returned={returned.volumes}, totalItems={_total(returned)}"
    )


def stop_words(
    reason: StopReason, job: BookJob, reading: Reading, returned: Returned | None = None
) -> str:
    """Tell why a run stopped, and where it goes on; `reading` is where it stands now."""
    match reason:
        case StopReason.QUOTA:
            return f"Stopped: quota limit reached, next startIndex={reading.start_index}"
        case StopReason.MAX_PER_RUN:
            return (
                f"Stopped: max_per_run reached ({reading.collected}/{job.max_per_run}),"
                f" next startIndex={reading.start_index}"
            )
        case StopReason.ERROR:
            return f"Stopped: API error, preserving startIndex={reading.start_index}"
        case StopReason.EXHAUSTED:
            total = _total(returned)
            is_past = returned is not None and reading.start_index >= (returned.total_items or 0)
            end = f"startIndex={reading.start_index} >= totalItems={total}"
            empty = f"no items at startIndex={reading.start_index} of totalItems={total}"
            digits = short_hash(job.query_set_hash)
            return f"Exhausted: {end if is_past else empty} (query_set_hash={digits}...)"


def stop_line(job: BookJob, words: str) -> str:
    """Tell of the end of a run."""
    return f"[google-books][{job.name}] {words}"


def skip_line(job: BookJob) -> str:
    """Tell that an exhausted job is not searched for."""
    digits = short_hash(job.query_set_hash)
    return f"[{job.name}] Skipped: exhausted (query_set_hash={digits})"


def _total(returned: Returned | None) -> str:
    total = returned.total_items if returned else None
    return "unknown" if total is None else str(total)
