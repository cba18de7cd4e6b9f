"""Run the tests and end in one line that says how many passed and failed."""
# ruff: noqa: INP001 - a script, not part of a package

from __future__ import annotations

import argparse
import sys

import pytest


class Count:
    """Remembers how many tests had which outcome."""

    def __init__(self) -> None:
        self.outcomes: dict[str, int] = {}

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Take the outcomes that pytest has collected by the end of the run."""
        self.outcomes = {name: len(reports) for name, reports in terminalreporter.stats.items()}

    def total(self, *names: str) -> int:
        """Return how many tests had one of the outcomes."""
        return sum(self.outcomes.get(name, 0) for name in names)


def main() -> int:
    """Run the tests named on the command line and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--broken", type=int, default=0, help="failures before the tests")
    options, rest = parser.parse_known_args()
    count = Count()
    # The second -q (the first stands in pyproject.toml) leaves the last line to us. Each worker has
    # servers of its own, and there are more of them than cores, since tests of crashes mostly wait;
    # the tests of a file stay together, long files first.
    spread = ["-n", "3", "--dist", "loadfile", "--no-loadscope-reorder"]
    code = pytest.main(["-q", *spread, *rest], plugins=[count])
    passed = count.total("passed", "xpassed")
    skipped = count.total("skipped", "xfailed")
    # A run that was interrupted or found no test counts as one failure.
    failed = max(count.total("failed", "error"), int(code != 0)) + options.broken
    line = f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")
    sys.stdout.write(f"{line}\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
