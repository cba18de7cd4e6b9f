"""The part `processes`: jobs per second with one, two and four worker processes."""

import os
from collections.abc import Mapping
from functools import partial
from itertools import product

from rich.progress import Progress

from bench.measure import Databases, Program, databases_of
from bench.queue import RUNS, Measured, in_turns
from bench.redis_queue import beside
from bench.report import Part, Row, ratio
from tests.servers import postgres_server, redis_server

JOBS = 50_000
PROCESSES = {"1 process": 1, "2 processes": 2, "4 processes": 4}
ALONE = "1 process"


def _program(name: str) -> Program:
    return Program(name, ("bench.processes_ours", str(PROCESSES[name])), JOBS)


def _row(engine: str, ours: Measured, alone: Measured) -> Row:
    peer = None if ours is alone else alone.value
    return Row(
        bench="processes",
        engine=engine,
        measure=f"jobs_per_second with {ours.program.name}",
        ours=ours.value,
        peer=None if peer is None else ALONE,
        peer_value=peer,
        ratio_to_peer=ratio(ours.value, peer),
        floor=None,
        ratio_to_floor=None,
        runs=RUNS,
    )


def _notes(measured: Mapping[tuple[str, str], Measured]) -> list[str]:
    """Tell how ours was set, and each run's value: the further apart, the less a median says."""
    settings = {outcome.settings for one in measured.values() for outcome in one.outcomes}
    notes = [f"{JOBS:,} jobs on {os.cpu_count()} cores: {', '.join(settings)}"]
    for (engine, name), one in measured.items():
        values = ", ".join(f"{outcome.jobs_per_second:,.0f}" for outcome in one.outcomes)
        notes.append(f"{engine} with {name}, each run: {values}")
    return notes


def run(progress: Progress) -> Part:
    """Measure ours on PostgreSQL alone and with Redis beside it, all in turns."""
    with postgres_server() as postgres, redis_server() as redis:
        engines: dict[str, Databases] = {
            "postgresql": databases_of(postgres),
            "redis": partial(beside, postgres, redis),
        }
        chosen = list(product(engines, PROCESSES))
        programs = [(_program(name), engines[engine]) for engine, name in chosen]
        measured = dict(zip(chosen, in_turns("processes", programs, progress), strict=True))
    rows = [_row(engine, one, measured[engine, ALONE]) for (engine, _), one in measured.items()]
    return Part(rows, _notes(measured))
