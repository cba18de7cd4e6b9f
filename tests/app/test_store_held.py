"""A database that others hold, or that has no space, refuses writes soon and reads as ever."""

import asyncio
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from mimawari.app.http.edge import LEAST_GUESSES
from tests.app.ground import OTHER_KEY, Api, check_error, open_api, until_down, until_ready

SOON_SECONDS = 5.0
READ_SECONDS = 1.0
PAGE = {"name": "a", "url": "http://127.0.0.1:1/"}


@pytest.fixture
async def on_file(tmp_path: Path) -> AsyncIterator[Api]:
    """The API on a SQLite file."""
    async with open_api(f"sqlite:///{tmp_path}/held.db", tmp_path, rate=150) as api:
        await until_ready(api.http)
        yield api


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold the write lock of a file as another process does."""
    rival = sqlite3.connect(path, isolation_level=None)
    rival.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        rival.rollback()
        rival.close()


async def test_while_another_process_holds_the_lock_writes_are_refused_and_reads_are_not(
    on_file: Api, tmp_path: Path
) -> None:
    async with httpx2.AsyncClient(base_url=on_file.address) as browser:
        # What is made only once, like a page's template, is no part of what is measured.
        assert (await browser.get("/login")).status_code == 200
        with held(tmp_path / "held.db"):
            for reader, path in ((on_file.http, "/api/status"), (browser, "/login")):
                async with asyncio.timeout(READ_SECONDS):
                    assert (await reader.get(path)).status_code == 200
            await check_writes_refused(on_file)
    await until_ready(on_file.http, SOON_SECONDS)
    assert (await on_file.http.post("/api/example/pages", json=PAGE)).status_code == 201


async def check_writes_refused(api: Api) -> None:
    """Insist that writes are refused soon, and that the API says that it is not ready."""
    async with asyncio.timeout(SOON_SECONDS):
        # Waiting in line behind a write that waits for the lock is waiting, too.
        writes = [api.http.post("/api/example/pages", json=PAGE) for _ in range(3)]
        for answer in await asyncio.gather(*writes):
            check_error(answer, 503, "store_down")
    await until_down(api.http, SOON_SECONDS)
    assert (await api.http.get("/healthz")).status_code == 200


async def test_keys_are_guessed_no_faster_while_attempts_cannot_be_counted_in_the_store(
    on_file: Api, tmp_path: Path
) -> None:
    with held(tmp_path / "held.db"):
        wrong = [
            on_file.http.get("/api/status", headers={"X-API-Key": f"wrong {number}"})
            for number in range(LEAST_GUESSES + 5)
        ]
        found = {answer.status_code for answer in await asyncio.gather(*wrong)}
        assert found == {503}
        # The refusal does not tell that this one is right.
        right = await on_file.http.get("/api/status", headers={b"X-API-Key": OTHER_KEY.encode()})
        assert right.status_code == 429


async def test_readiness_is_looked_up_once_for_all_who_ask_at_once(on_file: Api) -> None:
    found = await asyncio.gather(*(on_file.http.get("/readyz") for _ in range(50)))
    assert {response.status_code for response in found} == {200}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 48 MiB, for whom the system lets mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(disk)]
    made = subprocess.run(mount, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no small disk can be mounted here: {made.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


async def test_a_full_disk_is_not_ready_and_is_again_once_there_is_room(
    small_disk: Path, tmp_path: Path
) -> None:
    async with open_api(f"sqlite:///{small_disk}/full.db", tmp_path) as api:
        await until_ready(api.http)
        ballast = small_disk / "ballast"
        ballast.write_bytes(b"x" * (shutil.disk_usage(small_disk).free - 64 * 1024))
        await until_down(api.http, SOON_SECONDS)
        message = check_error(await api.http.get("/readyz"), 503, "store_down")
        assert "make room" in message
        assert (await api.http.get("/api/status")).status_code == 200
        ballast.unlink()
        await until_ready(api.http, SOON_SECONDS)
