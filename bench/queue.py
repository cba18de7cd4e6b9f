"""The part `queue`: no-op jobs per second from the first enqueue to the last acknowledgement."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median

from rich.progress import Progress

from bench.measure import (
    Databases,
    Outcome,
    Program,
    databases_of,
    measure,
    measure_calm,
    sqlite_database,
)
from bench.report import Part, Row, ratio
from tests.servers import mariadb_server, postgres_server

RUNS = 3
JOBS = 10_000
# For peers that would take the better part of a minute for all jobs.
FEWER_JOBS = 2_000

OURS = Program("ours", ("bench.ours", "queue"), JOBS)
FLOOR = Program("floor", ("bench.floor",), JOBS)


CALM = {"idle_statements_per_second": "idle", "lateness_p99_ms": "lateness"}


def peer(name: str, jobs: int = JOBS) -> Program:
    """Describe a peer's program."""
    return Program(name, (f"bench.peers.{name}",), jobs)


PEERS = {
    "sqlite": (peer("litequeue"), peer("huey"), peer("dbos", FEWER_JOBS)),
    "postgresql": (
        peer("pgqueuer"),
        peer("procrastinate", FEWER_JOBS),
        peer("saq", FEWER_JOBS),
    ),
    "mariadb": (),
}


@dataclass(frozen=True, slots=True)
class Measured:
    """All outcomes of one program."""

    program: Program
    outcomes: Sequence[Outcome]

    @property
    def value(self) -> float:
        """Give the median of jobs per second."""
        return median(outcome.jobs_per_second for outcome in self.outcomes)

    def note(self, engine: str) -> str:
        """Tell how the program was set."""
        last = self.outcomes[-1]
        return f"{engine} {self.program.name} ({last.jobs:,} jobs): {last.settings}"


@contextmanager
def databases(engine: str) -> Iterator[Databases]:
    """Give the maker of fresh databases of an engine, whose server runs meanwhile."""
    if engine == "sqlite":
        yield sqlite_database
    else:
        with postgres_server() if engine == "postgresql" else mariadb_server() as server:
            yield databases_of(server)


def in_turns(
    title: str, programs: Sequence[tuple[Program, Databases]], progress: Progress
) -> list[Measured]:
    """Run all programs in turns, so that the machine's noise hits all alike."""
    outcomes: list[list[Outcome]] = [[] for _ in programs]
    task = progress.add_task(title, total=RUNS * len(programs))
    for _ in range(RUNS):
        for (program, fresh), found in zip(programs, outcomes, strict=True):
            progress.update(task, description=f"{title} {program.name}")
            found.append(measure(program, fresh))
            progress.advance(task)
    progress.update(task, description=title)
    both = zip(programs, outcomes, strict=True)
    return [Measured(program, found) for (program, _), found in both]


def interleave(engine: str, programs: Sequence[Program], progress: Progress) -> list[Measured]:
    """Run all programs in turns on an engine, whose server runs meanwhile."""
    with databases(engine) as fresh:
        return in_turns(engine, [(program, fresh) for program in programs], progress)


def rows(engine: str, ours: float, peers: Sequence[Measured], floor: float) -> list[Row]:
    """Make one row per peer, or a single one without a peer."""
    values: list[tuple[str | None, float | None]] = [(one.program.name, one.value) for one in peers]
    return [
        Row(
            bench="queue",
            engine=engine,
            measure="jobs_per_second",
            ours=ours,
            peer=name,
            peer_value=value,
            ratio_to_peer=ratio(ours, value),
            floor=floor,
            ratio_to_floor=ratio(ours, floor),
            runs=RUNS,
        )
        for name, value in values or [(None, None)]
    ]


def calm(engine: str, progress: Progress) -> list[Row]:
    """Measure ours at rest and on time; these have no peer and no floor."""
    task = progress.add_task(f"{engine} at rest", total=len(CALM))
    found = []
    with databases(engine) as fresh:
        for measure_name, name in CALM.items():
            value = median(measure_calm(name, fresh) for _ in range(RUNS))
            found.append(
                Row(
                    bench="queue",
                    engine=engine,
                    measure=measure_name,
                    ours=value,
                    peer=None,
                    peer_value=None,
                    ratio_to_peer=None,
                    floor=None,
                    ratio_to_floor=None,
                    runs=RUNS,
                )
            )
            progress.advance(task)
    return found


def run(progress: Progress) -> Part:
    """Measure ours, the peers and the floor on every engine."""
    all_rows: list[Row] = []
    notes: list[str] = []
    for engine, peers in PEERS.items():
        measured = interleave(engine, (OURS, *peers, FLOOR), progress)
        ours, *others, floor = measured
        all_rows += rows(engine, ours.value, others, floor.value)
        notes += [one.note(engine) for one in measured]
        all_rows += calm(engine, progress)
    return Part(all_rows, notes)
