"""A database that is gone is said so, and its return is noticed without anybody's doing."""

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import httpx2
import pytest

from tests.app.ground import Api, check_error, open_api, put, until, until_down, until_ready
from tests.conftest import Databases
from tests.servers import Server, postgres_server, redis_server

RECOVERY_SECONDS = 5.0


@pytest.fixture
def server() -> Iterator[Server]:
    with postgres_server(durable=False) as running:
        yield running


async def test_readiness_follows_the_database_and_nothing_else_breaks(
    server: Server, tmp_path: Path, lines: io.StringIO
) -> None:
    async with open_api(server.url, tmp_path) as api:
        (job_id,) = await put(api.store)
        assert (await api.http.get("/readyz")).json() == {"status": "ready"}
        seen: list[int] = []
        watching = asyncio.create_task(_watch(api, seen))
        await _until_last(seen, 200)
        await asyncio.to_thread(server.kill)
        await until_down(api.http)
        await _check_down(api)
        await asyncio.to_thread(server.start)
        await until_ready(api.http, RECOVERY_SECONDS)
        assert (await api.http.get(f"/api/jobs/{job_id}")).status_code == 200
        await _until_last(seen, 200)
        watching.cancel()
        with pytest.raises(asyncio.CancelledError):
            await watching
        assert set(seen) == {200, 503}, lines.getvalue()


async def test_a_database_that_becomes_read_only_is_said_so_and_waited_for(
    server: Server, tmp_path: Path
) -> None:
    async with open_api(server.url, tmp_path) as api:
        await until_ready(api.http)
        page = {"name": "a", "url": "http://127.0.0.1:1/"}
        await _sql(server.url, "ALTER SYSTEM SET default_transaction_read_only = on")

        async def is_refused() -> bool:
            response = await api.http.post("/api/example/pages", json=page)
            return response.status_code == 503 and "read-only" in response.text

        await until(is_refused, RECOVERY_SECONDS)
        await _sql(server.url, "ALTER SYSTEM RESET default_transaction_read_only")

        async def is_taken() -> bool:
            return (await api.http.post("/api/example/pages", json=page)).status_code == 201

        await until(is_taken, RECOVERY_SECONDS)


async def _sql(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.execute("SELECT pg_reload_conf()")
    await connection.close()


async def _watch(api: Api, seen: list[int]) -> None:
    """Note every status that is answered, all the time."""
    async with httpx2.AsyncClient(base_url=api.address, headers=api.http.headers) as http:
        while True:
            for path in ("/readyz", "/api/status", "/api/jobs"):
                response = await http.get(path, timeout=30)
                seen.append(response.status_code)
            await asyncio.sleep(0.01)


async def _until_last(seen: list[int], status: int) -> None:
    async def is_last() -> bool:
        return seen[-1:] == [status]

    await until(is_last, RECOVERY_SECONDS)


async def _check_down(api: Api) -> None:
    """Insist that every route says what is wrong while the process itself is alive."""
    for path in ("/readyz", "/api/status", "/api/jobs", "/api/why?name=x", "/api/example/pages"):
        response = await api.http.get(path)
        assert "database" in check_error(response, 503, "store_down")
        assert response.headers["retry-after"] == "5"
    page = {"name": "a", "url": "http://127.0.0.1:1/"}
    check_error(await api.http.post("/api/example/pages", json=page), 503, "store_down")
    assert (await api.http.get("/healthz")).status_code == 200
    async with httpx2.AsyncClient(base_url=api.address) as http:
        check_error(await http.get("/api/status"), 401, "unauthorized")


async def test_a_database_that_hangs_is_said_to_be_gone_too(server: Server, tmp_path: Path) -> None:
    async with open_api(server.url, tmp_path) as api:
        await until_ready(api.http)
        await asyncio.to_thread(server.freeze)
        try:
            await until_down(api.http)
            check_error(await api.http.get("/readyz"), 503, "store_down")
            assert (await api.http.get("/healthz")).status_code == 200
        finally:
            await asyncio.to_thread(server.thaw)
        await until_ready(api.http, RECOVERY_SECONDS)


async def test_a_redis_that_hangs_is_said_to_be_gone_and_work_is_taken_all_the_same(
    databases: Databases, tmp_path: Path
) -> None:
    url = await databases.ready()
    with redis_server(durable=False) as redis:
        async with open_api(url, tmp_path, redis_url=redis.url) as api:
            await until_ready(api.http)
            await asyncio.to_thread(redis.freeze)
            try:
                await until_down(api.http)
                assert "Redis" in check_error(await api.http.get("/readyz"), 503, "store_down")
                assert (await api.http.get("/healthz")).status_code == 200
                page = {"name": "a", "url": "http://127.0.0.1:1/"}
                assert (await api.http.post("/api/example/pages", json=page)).status_code == 201
            finally:
                await asyncio.to_thread(redis.thaw)
            await until_ready(api.http, RECOVERY_SECONDS)


async def test_one_page_added_by_many_at_once_is_added_once(server: Server, tmp_path: Path) -> None:
    page = {"name": "a", "url": "http://127.0.0.1:1/"}
    async with open_api(server.url, tmp_path) as api:
        answers = await asyncio.gather(
            *(api.http.post("/api/example/pages", json=page) for _ in range(16))
        )
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 15
