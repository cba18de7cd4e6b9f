"""Counts what each port's suite passed on each engine, and says so at the end."""

from collections import Counter

import pytest

from tests.servers import BACKENDS

PORTS = (
    "queue",
    "schedule",
    "limiter",
    "breaker",
    "streaks",
    "pauses",
    "cursor",
    "outbox",
    "cache",
    "clock",
    "commit",
)
VARIANTS = (*BACKENDS, "real", "scaled", "virtual")


def _place(nodeid: str) -> tuple[str, str] | None:
    """Tell which port's suite a test belongs to, and on which engine or clock it ran."""
    path, _, rest = nodeid.partition("::")
    name = path.rpartition("/")[2].removeprefix("test_").removesuffix(".py").partition("_")[0]
    if "tests/conformance/" not in path or name not in PORTS:
        return None
    variant = rest.partition("[")[2].removesuffix("]").partition("-")[0]
    return name, variant if variant in VARIANTS else "alone"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how many tests of each port passed where."""
    passed = Counter(
        place
        for report in terminalreporter.stats.get("passed", [])
        if (place := _place(report.nodeid)) is not None
    )
    for port in PORTS:
        counts = [f"{where} {n}" for (name, where), n in sorted(passed.items()) if name == port]
        if counts:
            terminalreporter.write_line(f"conformance {port}: {', '.join(counts)}")
