"""Errors that nobody expected go through one port; the log always hears of them."""

from collections.abc import Mapping
from typing import Any

import structlog

from mimawari.kernel.job import Job
from mimawari.kernel.ports import Reporter
from mimawari.kernel.values import Trouble


class LogReporter:
    """Writes what nobody expected to the log, errors with their trace."""

    def report(self, trouble: Trouble) -> None:
        """Write one line."""
        log = structlog.get_logger(component=trouble.component)
        if trouble.level == "error":
            log.error(trouble.message, exc_info=trouble.error, **trouble.line)
        else:
            log.warning(trouble.message, **trouble.line)


LOG: Reporter = LogReporter()
"""The reporter where nobody else is to be told."""


def about_job(job: Job) -> Mapping[str, str | int | None]:
    """Tell of a job what may be told to anybody, beside its kind."""
    return {"id": job.id, "target": job.target, "attempt": job.attempt}


def burial(job: Job, message: str, line: Mapping[str, Any]) -> Trouble:
    """Tell of a job that the janitor put among the dead letters."""
    return Trouble(
        component="janitor",
        message=message,
        what=job.kind,
        about=about_job(job),
        line=line,
        level="warning",
    )
