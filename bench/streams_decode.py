"""The part `streams_decode`: what one segment costs to look into, against the description's way."""

import asyncio
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from rich.progress import Progress

from bench.report import Part, Row, ratio
from mimawari.media.findings import Findings
from mimawari.media.segment import analyse
from mimawari.net.reader import Reader

RUNS = 5
OURS_EACH, THEIRS_EACH = 40, 4
SECONDS, FPS = 5, 30
# Of the programme's best and lowest variant, with the bits of a second.
VARIANTS = {"best": ("1280x720", "2500k"), "lowest": ("256x144", "120k")}
PICTURE = (
    f"testsrc2=s=1280x720:r={FPS},noise=alls=6:allf=t,"
    "drawbox=c=black:t=fill:enable='between(t,2,3)'"
)
SOUND = "anoisesrc=c=pink:r=44100:a=0.3,volume=0:enable='between(t,1,2)'"
COMMANDS = {
    "black_start": ("-vf", "blackdetect=d=0.1:pix_th=0.10", "-an"),
    "silence_start": ("-af", "silencedetect=n=-50dB:d=0.5", "-vn"),
}

Measure = Callable[[], float]


def draw(folder: Path) -> dict[str, Path]:
    """Draw one segment of every variant, as a service encodes them."""
    if shutil.which("ffmpeg") is None:
        raise LookupError("ffmpeg is not installed")
    whole = folder / "whole.nut"
    source = ("-f", "lavfi", "-i", PICTURE, "-f", "lavfi", "-i", SOUND, "-t", str(SECONDS))
    _ffmpeg(*source, "-c:v", "ffv1", "-pix_fmt", "yuv420p", "-c:a", "pcm_s16le", str(whole))
    paths = {}
    for name, (size, bits) in VARIANTS.items():
        paths[name] = folder / f"{name}.ts"
        picture = ("-vf", f"scale={size.replace('x', ':')}", "-c:v", "libx264", "-b:v", bits)
        sound = ("-c:a", "aac", "-ac", "2", "-b:a", "64k")
        _ffmpeg("-i", str(whole), *picture, "-g", str(2 * FPS), *sound, str(paths[name]))
    return paths


def _ffmpeg(*options: str) -> str:
    command = ["ffmpeg", "-nostdin", "-hide_banner", *options]
    return subprocess.run(command, capture_output=True, check=True, text=True).stderr


def run_spec(path: Path) -> None:
    """Run the two commands of the description on a segment."""
    for wanted, options in COMMANDS.items():
        if wanted not in _ffmpeg("-i", str(path), *options, "-f", "null", "-"):
            raise ValueError(f"{path.name}: no {wanted}")


def check(found: Findings) -> None:
    """See that ours finds what the commands find."""
    if not (found.picture and found.picture.bad and found.sound and found.sound.bad):
        raise ValueError("ours finds neither black nor silence")


def spec_ms(path: Path) -> float:
    """Measure a segment's CPU time in the description's way, children and all."""
    before = _children_seconds()
    for _ in range(THEIRS_EACH):
        run_spec(path)
    return (_children_seconds() - before) / THEIRS_EACH * 1000


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def ours_ms(path: Path) -> float:
    """Measure a segment's CPU time in ours, in the process that asks and in the one that reads."""
    body = path.read_bytes()
    # A watch reads for days, so that the start of its reader counts for nothing.
    start = asyncio.run(_read_seconds(body, 1))
    return (asyncio.run(_read_seconds(body, 1 + OURS_EACH)) - start) / OURS_EACH * 1000


async def _read_seconds(body: bytes, times: int) -> float:
    before = _children_seconds() + time.process_time()
    reader = Reader()
    try:
        for _ in range(times):
            check(await reader.read(analyse, body))
    finally:
        await reader.close()
    return _children_seconds() + time.process_time() - before


def rows_of(values: Mapping[str, Sequence[float]]) -> list[Row]:
    """Set ours on the lowest variant beside the description's way on the best and on the same."""
    medians = {name: median(found) for name, found in values.items()}
    ours = medians.pop("ours")
    return [
        Row(
            bench="streams_decode",
            engine=f"lowest / {name}",
            measure="cpu_ms_a_segment",
            ours=ours,
            peer="two commands",
            peer_value=value,
            ratio_to_peer=ratio(ours, value),
            floor=None,
            ratio_to_floor=None,
            runs=RUNS,
        )
        for name, value in medians.items()
    ]


def run(progress: Progress) -> Part:
    """Measure all in turns on the same programme."""
    with tempfile.TemporaryDirectory(prefix="mimawari-bench-") as folder:
        paths = draw(Path(folder))
        measures: dict[str, Measure] = {
            "ours": lambda: ours_ms(paths["lowest"]),
            "best": lambda: spec_ms(paths["best"]),
            "lowest": lambda: spec_ms(paths["lowest"]),
        }
        values: dict[str, list[float]] = {name: [] for name in measures}
        task = progress.add_task("segments", total=RUNS * len(measures))
        for _ in range(RUNS):
            for name, measure in measures.items():
                values[name].append(measure())
                progress.advance(task)
        sizes = ", ".join(f"{name} {path.stat().st_size:,} bytes" for name, path in paths.items())
    rows = rows_of(values)
    less = ", ".join(f"{1 / row.ratio_to_peer:.0f}" for row in rows if row.ratio_to_peer)
    notes = [
        f"a segment of {SECONDS} s at {FPS} pictures a second: {sizes}",
        f"times less CPU than the two commands: {less}",
    ]
    notes.append(
        "ours: picture and sound of the lowest variant, decoded once in a reader that goes on;"
        " two commands: blackdetect and silencedetect as described, a process each, on the best"
        " variant and on the lowest"
    )
    return Part(rows, notes)
