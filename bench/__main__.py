"""Run all benchmarks, or the one that the environment's ONLY names."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from bench import (
    fetch,
    hot_apply,
    hot_board,
    hot_pace,
    pages,
    parse,
    prices_apply,
    prices_market,
    processes,
    queue,
    redis_queue,
    streams_decode,
    streams_watch,
)
from bench.report import Part, show, write

# Of the table where it goes to a file.
WIDTH = 100
RESULTS = Path(__file__).resolve().parent / "results.json"
PARTS: dict[str, Callable[[Progress], Part]] = {
    "queue": queue.run,
    "redis_queue": redis_queue.run,
    "processes": processes.run,
    "parse": parse.run,
    "fetch": fetch.run,
    "hot_apply": hot_apply.run,
    "hot_board": hot_board.run,
    "hot_pace": hot_pace.run,
    "prices_apply": prices_apply.run,
    "prices_market": prices_market.run,
    "pages": pages.run,
    "streams_decode": streams_decode.run,
    "streams_watch": streams_watch.run,
}


def chosen(only: str) -> list[str]:
    """Give the names of the parts to run."""
    if only and only not in PARTS:
        raise SystemExit(f"ONLY={only} is none of: {', '.join(PARTS)}")
    return [only] if only else list(PARTS)


def main() -> None:
    """Run the chosen parts, write their rows and print their tables."""
    for name in chosen(os.environ.get("ONLY", "")):
        with Progress(console=Console(stderr=True)) as progress:
            part = PARTS[name](progress)
        write(part.rows, RESULTS)
        show(name, part, Console(width=None if sys.stdout.isatty() else WIDTH))


if __name__ == "__main__":
    main()
