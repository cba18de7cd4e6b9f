"""The command line as a person uses it, in processes of their own."""

import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimawari.app.cli import main

# Loading the program takes longer than most commands: they are forked off a process that has it.
WARM = multiprocessing.get_context("forkserver")
WARM.set_forkserver_preload(["tests.app.terminal", "mimawari.app.serve", "mimawari.app.monitor"])
PROGRAMS = Path(sys.executable).parent
PATIENCE_SECONDS = 60.0
STOP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Read what it said as JSON, which is all it may have said."""
        assert (self.code, self.err) == (0, "")
        return json.loads(self.out)

    def refused(self, code: int = 2) -> str:
        """Insist that it ended with one sentence and no trace, and return the sentence."""
        assert (self.code, self.out) == (code, ""), self
        assert "Traceback" not in self.err
        (line,) = self.err.splitlines()
        assert line.startswith("mimawari: ")
        return line.removeprefix("mimawari: ")


@dataclass(frozen=True, slots=True)
class Terminal:
    """A terminal with a data folder of its own and none of the tester's settings."""

    data: Path
    variables: dict[str, str | bytes] = field(default_factory=dict)

    def environment(self, **more: str | bytes) -> dict[str, str | bytes]:
        """Return the variables of a command."""
        basic = {"PATH": os.environ["PATH"], "HOME": str(self.data), "LC_ALL": "C.UTF-8"}
        # Where the program is found, if not where it was installed.
        basic |= {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        return {**basic, "MIMAWARI_DATA": str(self.data), **self.variables, **more}

    def run(self, *words: str | bytes, **more: str | bytes) -> Said:
        """Run a command to its end, in a process that found the program loaded."""
        files = self._files("run")
        process = WARM.Process(target=become, args=(words, self.environment(**more), files))
        process.start()
        try:
            process.join(PATIENCE_SECONDS)
            assert process.exitcode is not None, "it never ended"
        finally:
            process.kill()
        return Said(process.exitcode, *(path.read_text(encoding="utf-8") for path in files))

    def run_program(self, *words: str, program: str = "mimawari", **more: str) -> Said:
        """Run the program itself to its end; it takes a while to load."""
        done = subprocess.run(
            [PROGRAMS / program, *words],
            capture_output=True,
            text=True,
            env=self.environment(**more),
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Said(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def serve(self, *words: str, program: str = "serve", **more: str) -> Iterator["Serving"]:
        """Run `mimawari serve`, or another command that stays, for as long as the block lasts."""
        files = self._files(program)
        with files[0].open("w") as out, files[1].open("w") as err:
            process = subprocess.Popen(
                [PROGRAMS / "mimawari", program, *words],
                stdout=out,
                stderr=err,
                env=self.environment(**{"MIMAWARI_PORT": "0", **more}),
            )
        try:
            yield Serving(process, *files)
        finally:
            process.kill()
            process.wait()

    def _files(self, name: str) -> list[Path]:
        """Name files for what a process will say and complain of."""
        stem = f"{name}-{time.monotonic_ns()}"
        return [self.data.parent / f"{stem}.{end}" for end in ("out", "err")]


def become(
    words: tuple[str | bytes, ...], variables: dict[str, str | bytes], files: list[Path]
) -> None:
    """Be the program from here on, as if these words had been typed."""
    os.environb.clear()
    os.environb.update({os.fsencode(k): os.fsencode(v) for k, v in variables.items()})
    sys.argv = ["mimawari", *map(os.fsdecode, words)]
    sys.stdout, sys.stderr = (path.open("w", encoding="utf-8") for path in files)
    os.dup2(sys.stdout.fileno(), 1)
    os.dup2(sys.stderr.fileno(), 2)
    main()


@dataclass(frozen=True, slots=True)
class Serving:
    """A `mimawari serve` that runs."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path

    def facts(self) -> dict[str, str]:
        """Wait for what it says when it has started."""
        wait_for(lambda: "Ctrl-C" in self.out.read_text() or self.process.poll() is not None)
        pairs = (
            re.split(r"\s{2,}", line, maxsplit=1) for line in self.out.read_text().splitlines()
        )
        return {name: value for name, value in pairs}  # noqa: C416 - says that they are pairs

    def log(self) -> list[dict[str, Any]]:
        """Read its log so far."""
        return [json.loads(line) for line in self.err.read_text().splitlines()]

    def stop(self, number: int) -> int:
        """Send a signal and return the code it ends with, soon."""
        self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)


def wait_for(condition: Callable[[], object], seconds: float = PATIENCE_SECONDS) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
