"""Sends one message by apprise in a process of its own, which can reach nothing but the gate.

It is run as a file: whatever a service's own code tries, connections to anywhere else, datagrams,
other programs and files are refused by the interpreter itself. Some addresses name a local file to
be read, as a key say; of files it sees only the interpreter's own code.
"""

import json
import logging
import mimetypes
import os
import resource
import sys
from typing import Any

MOST_LETTERS = 4000
MOST_EXCHANGES = 20
MOST_LINES = 20
PIECES_APART_SECONDS = 0.5
MEMORY_BYTES = 1024 * 1024 * 1024
MOST_CPU_SECONDS = 30
MOST_FILES = 64
_WAYS_OUT = ("socket.sendto", "socket.sendmsg", "socket.bind", "socket.gethostbyname")
_LOCAL = ("syslog.openlog", "syslog.syslog", "sqlite3.connect")
"""Ways to what is on this machine that are no files."""
_LISTS = ("os.listdir", "os.scandir", "glob.glob", "glob.glob/2", "os.walk", "os.fwalk")
_CHANGES = (
    *("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate"),
    *("os.chmod", "os.chown", "os.chflags", "os.utime", "os.setxattr", "os.removexattr"),
    *("os.chdir", "shutil.copyfile", "shutil.move", "shutil.rmtree", "tempfile.mkstemp"),
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/random")
_PROGRAMS = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn")


class Closed(ConnectionError):
    """What was tried does not pass the gate."""


def close_all_but(host: str, port: int) -> None:
    """Let this process reach one address and nothing else, until it ends."""

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event == "socket.connect" and tuple(given[1][:2]) != (host, port):
            raise Closed("this service does not speak HTTP, and nothing else is sent from here")
        if event == "socket.getaddrinfo" and given[0] not in {host, host.encode()}:
            raise Closed("this service asks for names itself, which nothing does from here")
        if event in _WAYS_OUT or event in _PROGRAMS:
            raise Closed("this service needs more than HTTP, and nothing else is sent from here")

    sys.addaudithook(look)


class Unseen(PermissionError):
    """A file that was tried is none of the interpreter's own."""


def close_files() -> None:
    """Let this process read the code of its libraries and no other file, and write none."""
    # What is named by a path that is not whole is refused, wherever this process was started.
    os.chdir("/")
    roots = tuple(
        os.path.abspath(one) + os.sep  # noqa: PTH100 - links are left as they are
        for one in {*sys.path, sys.prefix, sys.base_prefix}
        if os.path.isabs(one)  # noqa: PTH117 - a text
    )
    known = {*_DEVICES, *mimetypes.knownfiles}

    def is_own(path: Any) -> bool:
        if isinstance(path, int):
            return True
        text = os.fsdecode(path)
        plain = os.path.normpath(text)
        is_whole = os.path.isabs(text)  # noqa: PTH117 - a text
        return is_whole and (plain in known or f"{plain}{os.sep}".startswith(roots))

    def look(event: str, given: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = given
            if not is_own(path) or (not isinstance(path, int) and (flags or 0) & _WRITES):
                raise Unseen("this service reads or writes files, and it is given none")
        elif event in _LISTS and not is_own(given[0]):
            raise Unseen("this service looks into folders, and it is given none")
        elif event in _CHANGES or event in _LOCAL:
            raise Unseen("this service needs more of this machine than it is given")

    sys.addaudithook(look)


def limit() -> None:
    """Bound what this process may use, whatever it does."""
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, MOST_CPU_SECONDS),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))


class Lines(logging.Handler):
    """Keeps what apprise complains about."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        if len(self.kept) < MOST_LINES:
            self.kept.append(str(record.getMessage())[:MOST_LETTERS])


def readable(text: str) -> str:
    """Write JSON with its letters as people know them."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except ValueError:
        return text


def record_exchanges() -> list[dict[str, Any]]:
    """Keep every request that is made from now on, and what was answered."""
    from requests.adapters import HTTPAdapter  # noqa: PLC0415 - what is loaded first is closed in

    kept: list[dict[str, Any]] = []
    plain = HTTPAdapter.send

    def send(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        body = request.body or b""
        text = body if isinstance(body, str) else bytes(body).decode("utf-8", "replace")
        one: dict[str, Any] = {
            "method": str(request.method),
            "url": str(request.url),
            "sent": readable(text)[:MOST_LETTERS],
        }
        if len(kept) < MOST_EXCHANGES:
            kept.append(one)
        try:
            response = plain(self, request, *args, **kwargs)
        except Exception as error:
            one["error"] = f"{type(error).__name__}: {error}"[:MOST_LETTERS]
            raise
        one["status"] = response.status_code
        one["answer"] = response.content[:MOST_LETTERS].decode("utf-8", "replace")
        return response

    HTTPAdapter.send = send  # type: ignore[method-assign]
    return kept


def send(asked: dict[str, Any]) -> dict[str, Any]:
    """Send what was asked, and tell what came of it."""
    import apprise  # noqa: PLC0415 - what is loaded first is closed in

    lines = Lines()
    apprise.logger.handlers[:] = [lines]
    apprise.logger.propagate = False
    exchanges = record_exchanges()
    asset = apprise.AppriseAsset(
        app_id="Mimawari",
        app_desc="Mimawari 見回り",
        app_url="",
        storage_mode=apprise.PersistentStoreMode.MEMORY,
        plugin_paths=[],
        async_mode=False,
    )
    target = apprise.Apprise.instantiate(asked["url"], asset=asset)
    if target is None:
        return {"is_known": False, "is_sent": False, "exchanges": [], "lines": lines.kept}
    if "overflow=" not in asked["url"]:
        # Where a service takes less at once, the rest comes after it.
        target.overflow_mode = apprise.OverflowMode.SPLIT
    target.request_rate_per_sec = PIECES_APART_SECONDS
    is_sent = False
    try:
        is_sent = bool(
            target.notify(
                body=asked["body"], title=asked["title"], body_format=apprise.NotifyFormat.TEXT
            )
        )
    except Exception as error:  # noqa: BLE001 - a service's own code may raise anything
        lines.kept.append(f"{type(error).__name__}: {error}"[:MOST_LETTERS])
    return {"is_known": True, "is_sent": is_sent, "exchanges": exchanges, "lines": lines.kept}


def main() -> None:
    """Read what to send from standard input, and write what came of it."""
    sys.dont_write_bytecode = True
    asked = json.load(sys.stdin)
    close_files()
    limit()
    close_all_but("127.0.0.1", int(asked["port"]))
    json.dump(send(asked), sys.stdout)


if __name__ == "__main__":
    main()
