"""The private servers keep their promises: tests of faults rely on each of them."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncmy
import asyncpg
import pytest
import redis.asyncio
import sqlalchemy

from tests import servers
from tests.servers import Server, processes

STARTERS: dict[str, Callable[..., contextlib.AbstractContextManager[Server]]] = {
    "postgresql": servers.postgres_server,
    "mariadb": servers.mariadb_server,
    "redis": servers.redis_server,
}
ORPHAN = """
import sys, tests.servers
with getattr(tests.servers, sys.argv[1])(durable=False) as server:
    server.freeze()
    print(server.port, server.folder, flush=True)
    sys.stdin.read()
"""
# Its child has not yet become a program, for which it waits.
BEGINNER = """
import ctypes, os, signal
if not ctypes.CDLL(None).vfork():
    os.write(1, b"on\\n")
    signal.pause()
"""


@pytest.fixture(params=STARTERS, scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    # Its sessions here are not the program's, which alone bear hostile defaults.
    defaults = {} if request.param == "redis" else {"hostile": False}
    with STARTERS[request.param](**defaults) as started:
        yield started


@contextlib.asynccontextmanager
async def _session(url: str) -> AsyncIterator[Callable[[str], Awaitable[list[Any]]]]:
    """Connect with the engine's own driver and yield what runs a statement."""
    parts = sqlalchemy.make_url(url)
    if parts.get_backend_name() == "postgresql":
        connection = await asyncpg.connect(url)
        yield connection.fetch
        connection.terminate()
        return
    address = {"host": parts.host, "port": parts.port, "db": parts.database}
    login = {"user": parts.username, "password": parts.password}
    connection = await asyncmy.connect(**address, **login, autocommit=True)

    async def run(statement: str) -> list[Any]:
        async with connection.cursor() as cursor:
            await cursor.execute(statement)
            return list(await cursor.fetchall())

    yield run
    connection.close()


async def _sql(url: str, statement: str) -> list[Any]:
    """Run one statement on a connection of its own and return the rows."""
    async with _session(url) as run:
        return await run(statement)


async def _write(url: str) -> None:
    """Store one fact in the database."""
    if url.startswith("redis"):
        async with redis.asyncio.from_url(url) as client:
            await client.set("facts", "猫🐈")
        return
    await _sql(url, "CREATE TABLE facts (fact VARCHAR(10))")
    await _sql(url, "INSERT INTO facts VALUES ('猫🐈')")


async def _read(url: str) -> str | None:
    """Return the stored fact; none means that the database is empty."""
    if url.startswith("redis"):
        async with redis.asyncio.from_url(url, decode_responses=True) as client:
            fact = await client.get("facts")
            return None if fact is None else str(fact)
    tables = "SELECT table_name FROM information_schema.tables WHERE table_name = 'facts'"
    own = " AND table_schema IN (DATABASE())" if url.startswith("mariadb") else ""
    if not await _sql(url, tables + own):
        return None
    return str((await _sql(url, "SELECT fact FROM facts"))[0][0])


async def _exists(server: Server, url: str) -> bool:
    """Tell whether the server still knows the database or, with Redis, anything in it."""
    if server.engine == "redis":
        return await _read(url) is not None
    catalog = {"postgresql": "SELECT datname FROM pg_database", "mariadb": "SHOW DATABASES"}
    rows = await _sql(server.url, catalog[server.engine])
    return sqlalchemy.make_url(url).database in {row[0] for row in rows}


def _port_is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False


async def test_the_first_database_answers(server: Server) -> None:
    assert server.url.startswith(f"{server.engine}://")
    assert f"{server.host}:{server.port}/" in server.url
    assert await _read(server.url) is None


async def test_data_survive_a_kill(server: Server) -> None:
    url = server.fresh_database()
    await _write(url)
    server.kill()
    assert not _port_is_open(server.port)
    server.start()
    assert await _read(url) == "猫🐈"
    server.drop(url)


async def test_data_survive_a_stop(server: Server) -> None:
    url = server.fresh_database()
    await _write(url)
    server.stop()
    assert not _port_is_open(server.port)
    server.start()
    assert await _read(url) == "猫🐈"
    server.drop(url)


async def test_each_fresh_database_is_empty_and_its_own(server: Server) -> None:
    first, second = server.fresh_database(), server.fresh_database()
    await _write(first)
    assert first != second
    assert await _read(second) is None
    assert await _read(server.fresh_database()) is None


async def test_a_database_in_use_can_be_dropped(server: Server) -> None:
    url = server.fresh_database()
    await _write(url)
    async with _open_transaction(url):
        server.drop(url)
    assert not await _exists(server, url)


@contextlib.asynccontextmanager
async def _open_transaction(url: str) -> AsyncIterator[None]:
    """Hold a transaction that has read the fact for as long as the block lasts."""
    if url.startswith("redis"):
        async with redis.asyncio.from_url(url) as client, client.pipeline() as transaction:
            await transaction.watch("facts")
            yield
    else:
        async with _session(url) as run:
            await run("BEGIN")
            await run("SELECT fact FROM facts")
            yield


async def test_a_frozen_server_answers_only_after_the_thaw(server: Server) -> None:
    url = server.fresh_database()
    await _write(url)
    server.freeze()
    answer = asyncio.create_task(_read(url))
    done, _ = await asyncio.wait([answer], timeout=0.3)
    assert not done
    server.thaw()
    assert await answer == "猫🐈"


@pytest.mark.parametrize("engine", STARTERS)
def test_closing_leaves_no_process_and_no_file(engine: str) -> None:
    with STARTERS[engine](durable=False) as server:
        folder = server.folder
        server.freeze()
        assert folder.exists()
    assert not folder.exists()
    assert not _port_is_open(server.port)
    assert not _processes_naming(folder)


@pytest.mark.parametrize("starter", [starter.__name__ for starter in STARTERS.values()])
def test_a_killed_test_run_leaves_no_process_and_no_file(starter: str) -> None:
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", ORPHAN, starter]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        port, name = run.stdout.readline().split()
        run.send_signal(signal.SIGKILL)
    folder = Path(name)
    deadline = time.monotonic() + 20
    while _is_left(folder, int(port)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not folder.exists()
    assert not _processes_naming(folder)
    assert not _port_is_open(int(port))


def _is_left(folder: Path, port: int) -> bool:
    """Tell whether a file, a process or the port of a server is still there."""
    return folder.exists() or bool(_processes_naming(folder)) or _port_is_open(port)


def _processes_naming(folder: Path) -> list[str]:
    """Return the commands of all processes that name the folder."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            commands.append(path.read_text(errors="replace"))
    return [command for command in commands if folder.name in command]


def test_who_is_just_beginning_a_program_is_killed_with_it() -> None:
    with subprocess.Popen([sys.executable, "-c", BEGINNER], stdout=subprocess.PIPE) as beginner:
        assert beginner.stdout is not None
        assert beginner.stdout.readline() == b"on\n"
        pids = processes.tree(beginner.pid)
        processes.kill_tree(beginner.pid)
        assert len(pids) == 2
        assert not any(processes.tree(pid) for pid in pids)


def test_a_missing_server_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda *_args, **_options: None)
    with (
        pytest.raises(servers.ServerError, match=r"apt-get install .* mariadb-server"),
        servers.mariadb_server(),
    ):
        pass
