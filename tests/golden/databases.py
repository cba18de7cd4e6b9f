"""Load the dumps into databases of their engines."""

import lzma
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

from tests.servers.server import find

DUMPS = Path(__file__).parent / "dumps"
LOAD_SECONDS = 120


def read_dump(engine: str) -> str:
    """Return the statements that make the golden database of an engine."""
    return lzma.decompress((DUMPS / f"{engine}.sql.xz").read_bytes()).decode()


def load(engine: str, url: str) -> None:
    """Fill an empty database at a URL with the golden rows, as the version of the dumps had it."""
    statements = read_dump(engine)
    if engine == "sqlite":
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
            database.executescript(statements)
        return
    command = _psql(url) if engine == "postgresql" else _mariadb(url)
    done = subprocess.run(
        command,
        input=statements,
        capture_output=True,
        encoding="utf-8",
        timeout=LOAD_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:2000]


def _psql(url: str) -> list[str]:
    return [str(find("psql", "postgresql")), "-Xq", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", url]


def _mariadb(url: str) -> list[str]:
    account, _, place = url.removeprefix("mariadb://").partition("@")
    user, _, password = account.partition(":")
    address, _, name = place.partition("/")
    host, _, port = address.partition(":")
    program = str(find("mariadb", "mariadb-client"))
    who = [f"--user={user}", f"--password={password}", f"--host={host}", f"--port={port}"]
    # The dump says how it is to be read; that it may be written it leaves to the server.
    ready = "--init-command=SET SESSION tx_read_only = 0"
    return [program, "--no-defaults", *who, "--default-character-set=utf8mb4", ready, name]
