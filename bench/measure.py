"""Runs measured programs, each in a process of its own on a database of its own."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.servers import Server

TIMEOUT_SECONDS = 300
ROOT = Path(__file__).resolve().parent.parent

# Makes a fresh database, gives its URL and removes it in the end.
Databases = Callable[[], AbstractContextManager[str]]


@dataclass(frozen=True, slots=True)
class Program:
    """A measured program: its name, its module with first arguments, its jobs, its interpreter."""

    name: str
    command: tuple[str, ...]
    jobs: int
    python: str = sys.executable


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of a program printed."""

    jobs_per_second: float
    jobs: int
    settings: str


class ProgramFailed(Exception):
    """A measured program ended badly or measured something else than asked."""


@contextmanager
def sqlite_database() -> Iterator[str]:
    """Give the URL of an SQLite file that does not exist yet, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="mimawari-bench-") as folder:
        yield f"sqlite:///{folder}/bench.db"


def databases_of(server: Server) -> Databases:
    """Give the maker of fresh databases on a server."""

    @contextmanager
    def database() -> Iterator[str]:
        url = server.fresh_database()
        try:
            yield url
        finally:
            server.drop(url)

    return database


def measure(program: Program, databases: Databases) -> Outcome:
    """Run a program once on a fresh database and read the outcome it prints last."""
    with databases() as url:
        command = (*program.command, str(program.jobs), url)
        printed = run_program(program.name, command, program.python)
    outcome = Outcome(**printed)
    if outcome.jobs != program.jobs:
        raise ProgramFailed(f"{program.name} ran {outcome.jobs} jobs instead of {program.jobs}")
    return outcome


def measure_calm(name: str, databases: Databases) -> float:
    """Measure ours at rest or on time, on a fresh database."""
    with databases() as url:
        return float(run_program(name, ("bench.calm", name, url))["value"])


def run_program(
    name: str, command: tuple[str, ...], python: str = sys.executable
) -> dict[str, Any]:
    """Run a program and read the JSON line that it prints last."""
    done = subprocess.run(
        [python, "-m", *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise ProgramFailed(f"{name}: {done.stderr.strip() or done.stdout.strip()}")
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed
