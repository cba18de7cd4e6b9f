"""The lines that the rentals watch writes to the log: who, what, result, reason, next."""

from datetime import datetime
from typing import Any

import structlog

from mimawari.errors import JobError, Wait
from mimawari.kernel.job import Job
from mimawari.settings import Settings
from mimawari.watches.rentals.rules import DAILY_AT

log = structlog.get_logger(component="rentals")


def started(part: str, settings: Settings) -> None:
    """Say that the one who reads details, or the one who enqueues them, has started."""
    if part == "worker":
        # It is woken when there is something to do, so there is no interval of looking.
        log.info(
            "QueueWorker: Started (poll_interval=0s, max_concurrency=1)",
            what="rentals.detail",
            details_per_hour=settings.rentals_details_per_hour,
        )
    elif part == "scheduler":
        line = f"Scheduler: Started with daily run at {DAILY_AT:%H:%M}"
        log.info(
            line,
            what="rentals.daily",
            zone=str(settings.zone),
        )


def processing(job: Job, url: str, caller: str) -> None:
    """Say that a detail's turn has come."""
    line = f"QueueWorker: Processing id={job.id} url={url} attempt={job.attempt}"
    log.info(
        line,
        what="rentals.detail",
        id=job.id,
        url=url,
        caller=caller,
        attempt=job.attempt,
    )


def acquired(job: Job, url: str, caller: str) -> None:
    """Log that a detail passes the limiter."""
    line = f"QueueWorker: Acquiring DetailLimiter (caller={caller}, id={job.id})"
    log.info(
        line,
        what="rentals.detail",
        id=job.id,
        url=url,
        caller=caller,
    )


def waiting(caller: str, wait: Wait, now: datetime) -> None:
    """Say until when and why there is no leave, and who asked."""
    now_epoch, next_epoch = round(now.timestamp()), round(wait.until.timestamp())
    seconds = next_epoch - now_epoch
    line = (
        f"[DetailLimiter] caller={caller} now={now_epoch} next={next_epoch}"
        f" wait={seconds}s reason={wait.reason}"
    )
    log.info(
        line,
        caller=caller,
        now_epoch=now_epoch,
        next_epoch=next_epoch,
        wait_sec=seconds,
        reason=wait.reason,
        result="wait",
    )


def completed(job: Job, property_id: str, caller: str) -> None:
    """Say that a detail was read and kept."""
    line = f"QueueWorker: Completed id={job.id} property_id={property_id}"
    log.info(
        line,
        what="rentals.detail",
        id=job.id,
        property_id=property_id,
        caller=caller,
        result="success",
    )


def _asked(job: Job) -> dict[str, Any]:
    """Return who asked for what, for any line about a job."""
    return {"id": job.id, "url": job.args.get("url"), "caller": job.args.get("caller")}


def gone(job: Job, property_id: str, reason: str) -> None:
    """Say that a property is gone for good."""
    facts = {**_asked(job), "what": property_id, "result": "permanent_fail", "reason": reason}
    log.info("404 Not Found (property likely delisted): not retrying", **facts)
    line = (
        f"QueueWorker: Permanent failure (404) for id={job.id}"
        " - marking as permanent_fail (no retry)"
    )
    log.warning(
        line,
        **facts,
    )


def blocked(job: Job, error: JobError, until: datetime, minutes: int) -> None:
    """Say that the site turned us away, and what follows."""
    facts = {
        **_asked(job),
        "what": job.kind,
        "result": "retry",
        "reason": str(error),
        "next_retry_at": until.isoformat(),
    }
    log.warning("[WAF] Detected Yahoo WAF block page", **facts)
    line = f"QueueWorker: WAF/circuit breaker detected for id={job.id} - entering cooldown"
    log.warning(line, **facts)
    line = f"QueueWorker: Pausing for {minutes} minutes due to WAF detection"
    log.warning(line, **facts)


def enqueued(count: int, list_id: int) -> None:
    """Say how many properties a list has added to the queue."""
    line = f"Added {count} new properties to detail_scrape_queue"
    log.info(
        line,
        what=f"rentals:list:{list_id}",
        result="success",
        next="rentals.detail",
    )


def not_enqueued(property_id: str, url: str, reason: str) -> None:
    """Log why a known property cannot be read."""
    log.warning(
        "Scheduler: Property not enqueued",
        what=property_id,
        url=url,
        caller="scheduler",
        result="error",
        reason=reason,
    )


def daily(count: int, existing: int, done: int, errors: int) -> None:
    """Log what the daily round has enqueued, skipped, and could not enqueue."""
    line = (
        f"Scheduler: Daily enqueue completed. Enqueued={count}, SkippedExisting={existing},"
        f" SkippedDone={done}, Errors={errors}"
    )
    log.info(
        line,
        what="rentals.daily",
        caller="scheduler",
        result="success",
        next="rentals.detail",
    )


def cleaned(archived: int, failed: int, permanent_fail: int) -> None:
    """Say what was cleared away."""
    line = (
        f"Cleanup: archived {archived} done, deleted {failed} failed and"
        f" {permanent_fail} permanent_fail"
    )
    log.info(
        line,
        what="rentals.cleanup",
        result="success",
    )
