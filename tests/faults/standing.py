"""The ground of tests of processes that stand still: one in a terminal of its own."""

import json
import os
import pty
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import httpx2

from tests.app.terminal import wait_for
from tests.servers.server import free_port

ROOT = Path(__file__).parents[2]
KEY = "k" * 30
QUICK = {"cpu_seconds": 1.0, "ticks": 2.0}
"""Patience for tests that cannot wait for 10 s."""


@dataclass(frozen=True, slots=True)
class Blocking:
    """A process that serves in a terminal, and is started again there."""

    process: subprocess.Popen[bytes]
    port: int
    folder: Path

    def ask(self, method: str, path: str, **given: Any) -> httpx2.Response:
        """Ask the process once."""
        url = f"http://127.0.0.1:{self.port}{path}"
        with httpx2.Client(headers={"X-API-Key": KEY}, timeout=60, trust_env=False) as client:
            return client.request(method, url, **given)

    def is_up(self) -> bool:
        """Tell whether it answers."""
        try:
            url = f"http://127.0.0.1:{self.port}/healthz"
            return httpx2.get(url, timeout=1, trust_env=False).status_code == 200
        except httpx2.HTTPError:
            return False

    def until_up(self, seconds: float = 60) -> None:
        """Wait until it answers."""
        wait_for(self.is_up, seconds)

    def put(self, what: str, **how: str) -> None:
        """Put jobs or events, all at once, by their names."""
        names = ",".join(f"{name}:{way}" for name, way in how.items())
        answer = self.ask("POST", "/api/blocking/put", params={"what": what, "names": names})
        assert answer.status_code == 200, answer.text

    def stand(self, how: str) -> None:
        """Make it stand still in a request, and wait until it is ended."""
        with suppress(httpx2.HTTPError):
            self.ask("GET", f"/api/blocking/stand/{how}")

    def done(self) -> Counter[str]:
        """Count what was done, by name."""
        path = self.folder / "done"
        return Counter(path.read_text().splitlines() if path.exists() else ())

    def output(self) -> str:
        """Return all that the terminal showed."""
        return (self.folder / "terminal").read_text("utf-8", "replace")

    def log(self) -> list[dict[str, Any]]:
        """Return the lines of the log among it."""
        return [json.loads(line) for line in self.output().splitlines() if line[:1] == "{"]

    def lines(self, message: str) -> list[dict[str, Any]]:
        """Return what the log says under one message."""
        return [line["data"] for line in self.log() if line["message"] == message]

    def ends(self) -> int:
        """Count how often it was ended because it stood still."""
        return self.output().count("The process stood still")

    def stop(self, seconds: float = 30) -> int:
        """Stop it as a terminal does and return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)


@contextmanager
def blocking(
    folder: Path, roles: Collection[str] = (), patience: Mapping[str, float] | None = None
) -> Iterator[Blocking]:
    """Run the process as long as the block lasts."""
    folder.mkdir(exist_ok=True)
    fifo, port = folder / "fifo", free_port()
    if not fifo.exists():
        os.mkfifo(fifo)
    given = {"roles": list(roles), "patience": dict(patience or {})}
    variables = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8", "API_KEY": KEY,
        "MIMAWARI_DATA": str(folder.parent / "data"), "MIMAWARI_PORT": str(port),
        "BLOCKING_LOG": str(folder / "done"), "BLOCKING_FIFO": str(fifo),
    }  # fmt: skip
    if "PYTHONPATH" in os.environ:
        variables["PYTHONPATH"] = os.environ["PYTHONPATH"]
    (folder / "terminal").touch()
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.blocking", json.dumps(given)],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=variables, cwd=ROOT,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    reading = Thread(target=_keep, args=(ours, folder / "terminal"))
    reading.start()
    try:
        yield Blocking(process, port, folder)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        reading.join()


def _keep(terminal: int, path: Path) -> None:
    """Keep what a terminal shows, until nothing writes to it any more."""
    # A terminal that the last writer has left says so by an error.
    with path.open("ab", buffering=0) as kept, suppress(OSError):
        while piece := os.read(terminal, 65536):
            kept.write(piece.replace(b"\r\n", b"\n"))
    os.close(terminal)
