"""A demo in a process of its own, and a visitor who looks at it by HTTP."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.app.terminal import STOP_SECONDS, Terminal, wait_for

START_SECONDS = 180.0
"""Ten on a machine that has nothing else to do; this one may have."""
# Every address that the program speaks to or listens on is written down by Python itself.
NOTED = """
import json, sys
noted = open({path!r}, "a", buffering=1)
def note(event, args):
    if event in ("socket.connect", "socket.bind", "socket.sendto"):
        print(json.dumps([event, repr(args[1])]), file=noted)
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        print(json.dumps([event, repr(args[:1])]), file=noted)
sys.addaudithook(note)
from mimawari.app.cli import main
sys.argv[0] = "mimawari"
main()
"""


@dataclass(frozen=True, slots=True)
class Demo:
    """A demo that runs."""

    process: subprocess.Popen[bytes]
    out: Path
    err: Path
    folder: Path
    """Where it may leave something behind."""
    noted: Path

    def facts(self) -> dict[str, str]:
        """Wait for what it says when it has started."""
        wait_for(
            lambda: "Ctrl-C" in self.out.read_text() or self.process.poll() is not None,
            START_SECONDS,
        )
        lines = self.out.read_text().splitlines()
        pairs = (re.split(r"\s{2,}", line, maxsplit=1) for line in lines)
        return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}

    def tell(self, path: str) -> Any:
        """Ask the world what is really so."""
        return httpx2.get(f"{self.facts()['world']}_truth/{path}", timeout=30).json()

    def ask(self, path: str) -> Any:
        """Ask the API of the system."""
        key = Path(self.facts()["key"].removeprefix("cat ")).read_text().strip()
        address = self.facts()["look"].partition("/login")[0]
        return httpx2.get(f"{address}{path}", headers={"X-API-Key": key}, timeout=30).json()

    @contextmanager
    def visit(self) -> Iterator[httpx2.Client]:
        """Log in by the link."""
        look = self.facts()["look"]
        address = look.partition("/login")[0]
        with httpx2.Client(base_url=address, follow_redirects=True, timeout=30) as browser:
            assert browser.get(look).url.path == "/"
            yield browser

    def stop(self) -> int:
        """Press Ctrl-C and return the code it ends with, soon."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(STOP_SECONDS)

    def addresses(self) -> set[str]:
        """List all that was spoken to or listened on."""
        return {json.loads(line)[1] for line in self.noted.read_text().splitlines()}

    def left(self) -> list[str]:
        """List the processes of its session that are still there."""
        found = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                name, _, rest = path.read_text().rpartition(")")
            except (FileNotFoundError, ProcessLookupError):
                continue
            if rest.split()[3] == str(self.process.pid) and rest.split()[0] != "Z":
                found.append(name)
        return found


@contextmanager
def run_demo(terminal: Terminal, *words: str, before: Sequence[str] = ()) -> Iterator[Demo]:
    """Run a demo for as long as the block lasts, by a command that comes before if there is one."""
    ground = terminal.data.parent
    folder, noted = ground / "temporary", ground / "noted"
    folder.mkdir()
    noted.touch()
    program = NOTED.format(path=str(noted))
    out, err = ground / "out", ground / "err"
    with out.open("w") as said, err.open("w") as complained:
        process = subprocess.Popen(
            [*before, sys.executable, "-c", program, "demo", *words],
            stdout=said,
            stderr=complained,
            env=terminal.environment(TMPDIR=str(folder), MIMAWARI_PORT="0"),
            start_new_session=True,
        )
    try:
        yield Demo(process, out, err, folder, noted)
    finally:
        process.kill()
        process.wait()
