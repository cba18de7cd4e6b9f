"""The part `redis_queue`: ours on Redis beside PostgreSQL, against queues that live in Redis."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.progress import Progress

from bench.measure import Databases, Program, databases_of, run_program
from bench.queue import FEWER_JOBS, FLOOR, JOBS, OURS, RUNS, in_turns
from bench.report import Part, Row, ratio
from tests.servers import Server, postgres_server, redis_server
from tests.stores import BESIDE

ENGINE = "redis"
OURS_ALONE = "ours on PostgreSQL alone"
PEERS = ("saq", "arq", "taskiq", "dramatiq", "celery", "rq")
DEPTHS = (1_000, 10_000, 100_000, 1_000_000)
APART = {"arq": "arq", "celery": "celery[redis]"}
"""Peers that want other versions of what we use: each has an environment of its own."""
FOLDER = Path(__file__).resolve().parent.parent / "var" / "peers"


def _python(peer: str) -> str:
    """Give the interpreter of a peer, with an environment made for it if it needs its own."""
    if peer not in APART:
        return sys.executable
    place = FOLDER / peer
    python = place / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", APART[peer]], check=True)
    return str(python)


def _peer(name: str) -> Program:
    return Program(name, (f"bench.peers.redis_{name}",), FEWER_JOBS, _python(name))


@contextmanager
def beside(postgres: Server, redis: Server) -> Iterator[str]:
    """Give a fresh database beside a fresh Redis, and remove both in the end."""
    database, second = postgres.fresh_database(), redis.fresh_database()
    try:
        yield f"{database}{BESIDE}{second}"
    finally:
        postgres.drop(database)
        redis.drop(second)


def _row(
    name: str, ours: float, peer: tuple[str, float] | None = None, floor: float | None = None
) -> Row:
    peer_name, peer_value = peer or (None, None)
    return Row(
        bench="redis_queue",
        engine=ENGINE,
        measure=name,
        ours=ours,
        peer=peer_name,
        peer_value=peer_value,
        ratio_to_peer=ratio(ours, peer_value),
        floor=floor,
        ratio_to_floor=ratio(ours, floor),
        runs=RUNS if peer else 1,
    )


def _jobs(postgres: Server, redis: Server, progress: Progress) -> tuple[list[Row], list[str]]:
    both, theirs = partial(beside, postgres, redis), databases_of(redis)
    floor = Program(FLOOR.name, ("bench.redis_floor",), JOBS)
    programs: list[tuple[Program, Databases]] = [
        (OURS, both),
        (floor, both),
        (Program(OURS_ALONE, OURS.command, JOBS), databases_of(postgres)),
        *((_peer(name), theirs) for name in PEERS),
    ]
    found = {one.program.name: one for one in in_turns(ENGINE, programs, progress)}
    ours, least = found[OURS.name].value, found[floor.name].value
    rows = [
        _row("jobs_per_second", ours, (name, one.value), least)
        for name, one in found.items()
        if name not in {OURS.name, floor.name}
    ]
    return rows, [one.note(ENGINE) for one in found.values()]


def _calm(postgres: Server, redis: Server, progress: Progress) -> list[Row]:
    """Measure a claim before backlogs of all sizes, the filling of Redis, hand-overs and rest."""
    task = progress.add_task("backlogs", total=len(DEPTHS) + 2)
    rows = []
    for depth in DEPTHS:
        with beside(postgres, redis) as url:
            told = run_program("depth", ("bench.redis_depth", str(depth), url))
        rows += [_row(f"{name} at {depth:,}", value) for name, value in told.items()]
        progress.advance(task)
    with beside(postgres, redis) as url:
        told = run_program("hand-overs", ("bench.redis_handover", url))
    rows += [_row(name, value) for name, value in told.items()]
    progress.advance(task)
    with beside(postgres, redis) as url:
        told = run_program("idle", ("bench.redis_depth", "0", url))
    rows.append(_row("idle_commands_per_second", told["commands"]))
    progress.advance(task)
    return rows


def run(progress: Progress) -> Part:
    """Measure ours, the peers and the floor; then ours before a backlog and at rest."""
    with postgres_server() as postgres, redis_server() as redis:
        rows, notes = _jobs(postgres, redis, progress)
        return Part([*rows, *_calm(postgres, redis, progress)], notes)
