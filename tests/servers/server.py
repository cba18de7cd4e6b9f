"""A server of any engine: its port, folder, processes and life."""

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, ClassVar

from tests.servers import processes
from tests.servers.processes import freeze_tree, is_gone, kill_tree, send, tree, wait_for

START_SECONDS = 60.0
STOP_SECONDS = 60.0
CLIENT_SECONDS = 60.0
POLL_SECONDS = 0.01
# Below Linux's ephemeral range: while a server is down, no client's outgoing connection can be
# given its port, and no client can connect to itself.
PORTS = range(20000, 32768)
PORT_ATTEMPTS = 5


class ServerError(RuntimeError):
    """A server is not installed, does not start or refuses an order."""


def find(program: str, package: str) -> Path:
    """Return the path of a server's program or say what to install."""
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    newest_first = sorted(versions, key=lambda folder: float(folder.parent.name), reverse=True)
    folders = [*os.get_exec_path(), *map(str, newest_first), "/usr/sbin", "/usr/local/sbin"]
    found = shutil.which(program, path=os.pathsep.join(folders))
    if found is None:
        raise ServerError(
            f"{program} is missing: run `make test`, "
            f"or as root: apt-get install --no-install-recommends {package}"
        )
    return Path(found)


def free_port(count: int = 1) -> int:
    """Return the first of so many loopback ports that nothing listens on at this moment."""
    while True:
        port = random.choice(PORTS[:-count])
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for number in range(port, port + count):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", number))
            return port


class Server(ABC):
    """A server of one engine with its own port, folder and data."""

    __slots__ = ("_guard", "_process", "durable", "folder", "hostile", "port")

    engine: ClassVar[str]
    account: ClassVar[str]
    stop_signal: ClassVar[signal.Signals] = signal.SIGTERM
    host: ClassVar[str] = "127.0.0.1"

    def __init__(self, *, durable: bool, hostile: bool = True) -> None:
        """Make the folder and its guard; nothing runs yet."""
        self.durable = durable
        self.hostile = hostile
        self.port = 0
        self.folder = Path(tempfile.mkdtemp(prefix=f"mimawari-{self.engine}-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = subprocess.Popen(
            [sys.executable, "-I", processes.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            # An interrupt from the keyboard must not reach it before its work is done.
            start_new_session=True,
        )

    @property
    def url(self) -> str:
        """Return the URL of the server's first database."""
        return self._url("mimawari")

    @property
    def log(self) -> str:
        """Return what the server has written since it was made."""
        return (self.folder / "log").read_text(errors="replace")

    def open(self) -> None:
        """Make the data folder, start the server on a free port and make the first database."""
        if os.geteuid() == 0:
            shutil.chown(self.folder, self.account, pwd.getpwnam(self.account).pw_gid)
        self._create()
        for attempt in range(PORT_ATTEMPTS):
            self.port = free_port()
            try:
                self.start()
                break
            except ServerError:
                if attempt + 1 == PORT_ATTEMPTS or "in use" not in self.log:
                    raise
        self._prepare()

    def start(self) -> None:
        """Start the server on its port and data and return once it answers."""
        if self._process is not None:
            raise ServerError(f"{self.engine} is running already")
        process = self._spawn(self._command())
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise ServerError(f"{self.engine} does not start:\n{self.log[-2000:]}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Shut the server down in an orderly way and return once all its processes are gone."""
        if self._process is None:
            return
        pids = tree(self._process.pid)
        self.thaw()
        self._process.send_signal(self.stop_signal)
        self._process.wait(STOP_SECONDS)
        wait_for(pids, is_gone)
        self._ended()

    def kill(self) -> None:
        """End all the server's processes at once, as a crash does."""
        if self._process is not None:
            kill_tree(self._process.pid)
            self._process.wait()
            self._ended()

    def freeze(self) -> None:
        """Hold all the server's processes; connections stay open and nothing answers."""
        if self._process is not None:
            freeze_tree(self._process.pid)

    def thaw(self) -> None:
        """Let a frozen server go on."""
        if self._process is not None:
            send(reversed(tree(self._process.pid)), signal.SIGCONT)

    def close(self) -> None:
        """Kill the server and return once no process and no file of it is left."""
        if self._guard.poll() is None:
            self.kill()
            self._tell("end")
            self._guard.communicate()

    @abstractmethod
    def fresh_database(self) -> str:
        """Make a new empty database and return its URL."""

    @abstractmethod
    def drop(self, url: str) -> None:
        """Remove a database, also while it is in use."""

    @abstractmethod
    def _url(self, database: str) -> str:
        """Return the URL of a database."""

    @abstractmethod
    def _create(self) -> None:
        """Make the data folder."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make the first database on the server that has just started."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command that runs the server in the foreground."""

    @abstractmethod
    def _answers(self) -> bool:
        """Tell whether the server takes orders now."""

    def _spawn(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Run a program under the server's account, with the guard watching."""
        switch: dict[str, Any] = {}
        if os.geteuid() == 0:
            group = pwd.getpwnam(self.account).pw_gid
            switch = {"user": self.account, "group": group, "extra_groups": []}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment(),
                start_new_session=True,
                **switch,
            )
        self._tell(str(self._process.pid))
        return self._process

    def _run(self, command: list[str]) -> None:
        """Run a program under the server's account to its end and insist on success."""
        process = self._spawn(command)
        if process.wait() != 0:
            raise ServerError(f"{command[0]} failed:\n{self.log[-2000:]}")
        self._ended()

    def _client(self, command: list[str], order: str = "") -> str:
        """Run a client program, give it the order and return its answer."""
        done = subprocess.run(
            command,
            input=order,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self._environment(),
            timeout=CLIENT_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            raise ServerError(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """Return an environment without the settings of the person who runs the tests."""
        return {"PATH": os.environ["PATH"], "HOME": str(self.folder), "LC_ALL": "C.UTF-8"}

    def _ended(self) -> None:
        """Note that no process of the server is left."""
        self._process = None
        self._tell("0")

    def _tell(self, line: str) -> None:
        """Send the guard a line."""
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{line}\n".encode())
        self._guard.stdin.flush()
