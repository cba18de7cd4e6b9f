"""The part `streams_watch`: cores and memory that it costs to watch many streams."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
from rich.progress import Progress

from bench.measure import ROOT, ProgramFailed
from bench.report import Part, Row, ratio
from bench.streams_world import SEGMENT_SECONDS, video_of
from mimawari.kernel.clock import RealClock
from mimawari.sim.sites.webhooks import KEY
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.streams import sync
from mimawari.watches.streams.models import Config, Monitor, Status
from mimawari.watches.streams.runner import place

STREAMS = int(os.environ.get("STREAMS", "50"))
SECONDS = 60
WARM_SECONDS = 20
PATIENCE_SECONDS = 120
ROLES = ("monitor", "scheduler", "deliverer")
MOST_CORES, MOST_MIB = 0.5, 200
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Used:
    """What a process and its children have used."""

    cores: float = 0.0
    rss: list[float] = field(default_factory=list)
    pss: list[float] = field(default_factory=list)
    by_process: dict[str, float] = field(default_factory=dict)


def family_of(pid: int) -> list[int]:
    """List a process and all that came of it."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family_of(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    """Tell how long a process has worked, with those of its children that have ended."""
    numbers = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, numbers[11:15])) / _TICKS


def memory_mib(pid: int) -> tuple[float, float]:
    """Tell how much memory a process has, and its share of it."""
    lines = dict(
        line.split(":", 1)
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    )
    rss, pss = (int(lines[name].split()[0]) / 1024 for name in ("Rss", "Pss"))
    return rss, pss


@contextmanager
def world(streams: int) -> Iterator[str]:
    """Run the world, and give its address."""
    command = [sys.executable, "-m", "bench.streams_world", str(streams)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextmanager
def served(folder: Path, address: str) -> Iterator[int]:
    """Run the program with the parts that watch, and give its process id."""
    given = {
        "MIMAWARI_DATA": str(folder),
        "MIMAWARI_STREAMS_RESOLVER_URL": f"{address}/resolve",
        "MIMAWARI_ALLOW_HOSTS": address.removeprefix("http://"),
        "WEBHOOK_SIGNING_KEY": KEY,
    }
    roles = [word for role in ROLES for word in ("--role", role)]
    program = Path(sys.executable).parent / "mimawari"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [program, "serve", *roles], env={**os.environ, **given}, stdout=log, stderr=log
        )
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


async def add_monitors(path: Path, address: str, streams: int) -> None:
    """Have the streams monitored as whoever asks for them by default."""
    clock = RealClock()
    store = SqlStore(f"sqlite:///{path}", clock)
    await upgrade(store.database)
    now = clock.now()
    async with store.edit() as tx:
        for number in range(streams):
            monitor = Monitor(
                id=sync.new_monitor_id(),
                stream_url=f"https://www.youtube.com/watch?v={video_of(number)}",
                callback_url=f"{address}/hooks/{video_of(number)}",
                config=Config(),
                metadata={},
                status=Status.INITIALIZING,
                created_at=now,
            )
            await sync.add(tx, monitor, "bench")
            place(tx, monitor)
    await store.close()


def list_fetched(address: str, after: int) -> tuple[dict[str, list[int]], int]:
    """List the segments that were fetched of each stream since a request, and the last request."""
    found: dict[str, list[int]] = defaultdict(list)
    with httpx2.Client(base_url=address, timeout=30) as http:
        while seen := http.get("/_seen", params={"after": after, "limit": 10_000}).json()["seen"]:
            for one in seen:
                parts = one["path"].split("/")
                if one["part"] == "live" and parts[-1].endswith(".ts"):
                    found[parts[2]].append(int(parts[-1].removesuffix(".ts")))
            after = seen[-1]["n"]
    return found, after


def wait_until_watched(address: str, streams: int) -> None:
    """Wait until a segment of every stream was fetched."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(list_fetched(address, 0)[0]) < streams:
        if time.monotonic() > deadline:
            raise ProgramFailed(f"not all of {streams} streams are watched")
        time.sleep(1)


def measure(pid: int, progress: Progress) -> Used:
    """Measure a process and all that came of it for a while."""
    used = Used()
    before = {one: cpu_seconds(one) for one in family_of(pid)}
    began = time.monotonic()
    task = progress.add_task("seconds", total=SECONDS)
    while time.monotonic() < began + SECONDS:
        time.sleep(1)
        figures = [memory_mib(one) for one in family_of(pid)]
        used.rss.append(sum(rss for rss, _ in figures))
        used.pss.append(sum(pss for _, pss in figures))
        progress.advance(task)
    took = time.monotonic() - began
    for one in family_of(pid):
        cores = (cpu_seconds(one) - before.get(one, 0.0)) / took
        used.by_process[_name(one)] = used.by_process.get(_name(one), 0.0) + cores
    used.cores = sum(used.by_process.values())
    return used


def _name(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return "main" if "serve" in words else words[2] if len(words) > 2 else words[0]


def check_whole(fetched: Mapping[str, list[int]], streams: int) -> int:
    """See that every segment of every stream was fetched once and in its turn; count them."""
    for name, numbers in fetched.items():
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            raise ProgramFailed(f"{name}: not each segment once: {numbers}")
    least = SECONDS / SEGMENT_SECONDS * 0.75
    if len(fetched) != streams or min(map(len, fetched.values())) < least:
        raise ProgramFailed(f"{len(fetched)} of {streams} streams, some with too few segments")
    return sum(map(len, fetched.values()))


def _row(measure: str, value: float, most: float) -> Row:
    return Row(
        bench="streams_watch",
        engine=f"{STREAMS} streams",
        measure=measure,
        ours=round(value, 3),
        peer="promised",
        peer_value=most,
        ratio_to_peer=ratio(value, most),
        floor=None,
        ratio_to_floor=None,
        runs=1,
    )


def run(progress: Progress) -> Part:
    """Watch the streams, first until all are watched, then while it is measured."""
    with tempfile.TemporaryDirectory(prefix="mimawari-bench-") as name, world(STREAMS) as address:
        folder = Path(name)
        asyncio.run(add_monitors(folder / "mimawari.db", address, STREAMS))
        with served(folder, address) as pid:
            wait_until_watched(address, STREAMS)
            time.sleep(WARM_SECONDS)
            after = list_fetched(address, 0)[1]
            used = measure(pid, progress)
            segments = check_whole(list_fetched(address, after)[0], STREAMS)
    return Part(_rows(used), _notes(used, segments))


def _rows(used: Used) -> list[Row]:
    return [
        _row("cores", used.cores, MOST_CORES),
        _row("rss_mib", max(used.rss), MOST_MIB),
        _row("pss_mib", max(used.pss), MOST_MIB),
    ]


def _notes(used: Used, segments: int) -> list[str]:
    shares = ", ".join(f"{name} {cores:.3f}" for name, cores in used.by_process.items())
    found = (
        f"{segments} segments of {SEGMENT_SECONDS:g} s in {SECONDS} s, each fetched once;"
        f" checks every {Config().check_interval_sec} s; cores: {shares}"
    )
    how = (
        "of `mimawari serve` with the parts that watch, its children too, on SQLite; the streams"
        " are served by another process; memory: the most at any second, and by its share"
    )
    return [found, how]
