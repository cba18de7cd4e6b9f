"""A real Kubernetes API server on loopback, which ends with whoever asked for it."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.captured import KUBERNETES
from tests.servers import ServerError, processes
from tests.servers.processes import kill_tree
from tests.servers.server import find, free_port

# What the start leaves behind becomes a child of this one, so that all ends with it.
KEEPER = """
import ctypes, signal, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
print("ready" if done.returncode == 0 else "failed", flush=True)
signal.pause()
"""


class ApiServer:
    """An API server with its own etcd, port and folder."""

    def __init__(self) -> None:
        find("etcd", "etcd-server")
        self.folder = Path(tempfile.mkdtemp(prefix="mimawari-kube-"))
        self._keeper: subprocess.Popen[str] | None = None
        self._port = free_port(3)
        self._guard = subprocess.Popen(
            [sys.executable, "-I", processes.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    @property
    def admin(self) -> Path:
        """The way in for somebody who may do everything."""
        return self.folder / "admin.yaml"

    @property
    def gateway(self) -> Path:
        """The way in for the gateway's own account."""
        return self.folder / "gateway.yaml"

    def start(self) -> None:
        """Start it, again on the same port and with what was kept, and return once it answers."""
        self._keeper = subprocess.Popen(
            [sys.executable, "-I", "-c", KEEPER, str(KUBERNETES / "start"), str(self.folder),
             str(self._port)],
            stdout=subprocess.PIPE,
            stderr=(self.folder / "log").open("a"),
            text=True,
            start_new_session=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.folder)},
        )  # fmt: skip
        self._tell(str(self._keeper.pid))
        assert self._keeper.stdout is not None
        if self._keeper.stdout.readline() != "ready\n":
            log = (self.folder / "apiserver.log").read_text(errors="replace")
            raise ServerError(f"the API server does not start:\n{log[-2000:]}")

    def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._keeper is not None:
            kill_tree(self._keeper.pid)
            self._keeper.wait()
            self._keeper = None
            self._tell("0")

    def close(self) -> None:
        """Leave nothing of it behind."""
        self.kill()
        self._tell("end")
        self._guard.communicate()

    def _tell(self, line: str) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{line}\n")
        self._guard.stdin.flush()


@contextlib.contextmanager
def api_server() -> Iterator[ApiServer]:
    """Run an API server for as long as the block lasts."""
    server = ApiServer()
    try:
        server.start()
        yield server
    finally:
        server.close()
