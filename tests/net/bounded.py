"""Fetches one page in a process of its own and prints what became of it and of its memory."""

import asyncio
import json
import resource
import sys
import tempfile
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import structlog

from mimawari.errors import MimawariError
from mimawari.kernel.clock import RealClock
from tests.net.fetching import SITE, open_ground


def peak_mib() -> float:
    """Tell the most memory this process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


async def measure(url: str, seconds: float) -> dict[str, Any]:
    """Fetch a page within a deadline, after a small one that warms everything up."""
    site = replace(SITE, deadline_for=timedelta(seconds=seconds))
    clock = RealClock()
    with tempfile.TemporaryDirectory() as folder:
        async with open_ground(Path(folder), clock) as ground:
            await (await ground.fetcher()).fetch(SITE, f"{url}?warm")
            fetcher = await ground.fetcher()
            before, since = peak_mib(), clock.mark()
            try:
                outcome = str((await fetcher.fetch(site, f"{url}/bad")).outcome)
                reason = ""
            except MimawariError as error:
                outcome, reason = type(error).__name__, str(error)
            took = clock.mark().elapsed_since(since)
            grew = peak_mib() - before
    return {"outcome": outcome, "reason": reason, "grew": grew, "took": took.total_seconds()}


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    print(json.dumps(asyncio.run(measure(sys.argv[1], float(sys.argv[2])))))  # noqa: T201
