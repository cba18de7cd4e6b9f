"""The command line contract that every measured program keeps."""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sized

POLL_SECONDS = 0.005
PATIENCE_SECONDS = 240.0


def main(run: Callable[[int, str], float], settings: str) -> None:
    """Run the `JOBS URL` that end the command line and print the outcome as one JSON line."""
    jobs, url = int(sys.argv[-2]), sys.argv[-1]
    seconds = run(jobs, url)
    outcome = {"jobs_per_second": round(jobs / seconds, 1), "jobs": jobs, "settings": settings}
    print(json.dumps(outcome), flush=True)


def sqlite_path(url: str) -> str:
    """Give the file path behind an SQLite URL, or the path itself."""
    return url.removeprefix("sqlite:///")


def check(jobs: int, handled: int, acknowledged: int) -> None:
    """Fail unless the handler ran once per job and the queue's tables agree."""
    if (handled, acknowledged) != (jobs, jobs):
        raise SystemExit(f"{jobs} jobs, {handled} handled, {acknowledged} acknowledged")


def patience(jobs: int) -> Iterator[None]:
    """Yield once per look at the queue until it has taken too long."""
    deadline = time.perf_counter() + PATIENCE_SECONDS
    while time.perf_counter() < deadline:
        yield
    raise SystemExit(f"the {jobs} jobs were not done in {PATIENCE_SECONDS:.0f} seconds")


def wait_for(jobs: int, handled: Sized, acknowledged: Callable[[], int]) -> None:
    """Block until all jobs are handled and the queue's own tables say they are acknowledged."""
    for _ in patience(jobs):
        if len(handled) >= jobs and acknowledged() >= jobs:
            return
        time.sleep(POLL_SECONDS)


async def wait_for_async(
    jobs: int, handled: Sized, acknowledged: Callable[[], Awaitable[int]]
) -> None:
    """Wait until all jobs are handled and the queue's own tables say they are acknowledged."""
    for _ in patience(jobs):
        if len(handled) >= jobs and await acknowledged() >= jobs:
            return
        await asyncio.sleep(POLL_SECONDS)
