"""What every request passes first: its key, its size, strict JSON; every error in one form."""

import io
import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from fastapi import APIRouter

from mimawari.app.http.edge import MOST_BYTES
from mimawari.kernel.watch import Watch
from tests.app.ground import KEY, OTHER_KEY, Api, check_error, check_guards, open_api
from tests.conftest import Databases

PAGES = "/api/example/pages"
JSON = {"Content-Type": "application/json"}


async def ask(api: Api, *keys: bytes) -> httpx2.Response:
    """Ask for the status with these keys and no other."""
    headers = [(b"X-API-Key", key) for key in keys]
    async with httpx2.AsyncClient(base_url=api.address) as http:
        return await http.get("/api/status", headers=headers)


@pytest.mark.parametrize("key", [KEY.encode(), OTHER_KEY.encode()])
async def test_any_of_several_keys_opens_the_api_also_one_beyond_ascii(
    api: Api, key: bytes
) -> None:
    assert (await ask(api, key)).status_code == 200


@pytest.mark.parametrize(
    "key",
    [
        b"",
        b"wrong",
        KEY.encode()[:-1],
        KEY.encode() + b"!",
        KEY.upper().encode(),
        b",".join((KEY.encode(), OTHER_KEY.encode())),
        OTHER_KEY.encode("koi8-r"),
        b"\xff\xfe\x80garbage",
        "clé".encode("latin-1"),
        b"k" * 8000,
    ],
)
async def test_a_key_that_is_not_ours_is_refused_byte_by_byte(api: Api, key: bytes) -> None:
    response = await ask(api, key)
    message = check_error(response, 401, "unauthorized")
    assert "X-API-Key" in message
    assert response.headers["www-authenticate"] == "ApiKey"


async def test_a_missing_key_is_refused(api: Api) -> None:
    check_error(await ask(api), 401, "unauthorized")


async def test_an_unknown_path_is_not_shown_to_a_stranger(api: Api) -> None:
    async with httpx2.AsyncClient(base_url=api.address) as http:
        check_error(await http.get("/api/nowhere"), 401, "unauthorized")


async def test_health_and_the_schema_are_open_without_a_key(api: Api) -> None:
    async with httpx2.AsyncClient(base_url=api.address) as http:
        alive = await http.get("/healthz")
        assert (alive.status_code, alive.json()) == (200, {"status": "alive"})
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()) == (200, {"status": "ready"})
        schema = await http.get("/openapi.json")
        assert schema.json()["info"]["title"] == "Mimawari"
    for response in (alive, ready, schema):
        check_guards(response)


@pytest.mark.parametrize("path", ["/nowhere", "/api/jobs/", "/docs", "//healthz", "/api/%00"])
async def test_an_unknown_path_is_not_found(api: Api, path: str) -> None:
    check_error(await api.http.get(f"{api.address}{path}"), 404, "not_found")


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("DELETE", "/api/jobs", "GET"),
        ("PUT", PAGES, "GET, POST"),
        ("OPTIONS", "/healthz", "GET"),
        ("FROB", "/api/status", "GET"),
        ("POST", "/openapi.json", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_told_every_right_one(
    api: Api, method: str, path: str, allow: str
) -> None:
    response = await api.http.request(method, path)
    check_error(response, 405, "method_not_allowed")
    assert response.headers["allow"] == allow


async def test_an_answer_of_every_kind_carries_the_guards(api: Api) -> None:
    for path in ("/healthz", "/api/jobs", "/api/status", PAGES, "/openapi.json"):
        response = await api.http.get(path)
        assert response.status_code == 200
        check_guards(response)


async def test_a_body_of_the_largest_size_is_read(api: Api) -> None:
    body = json.dumps({"name": "x"}).encode().ljust(MOST_BYTES)
    check_error(await api.http.post(PAGES, content=body, headers=JSON), 422, "bad_input")


async def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    body = b" " * (MOST_BYTES + 1)
    check_error(await api.http.post(PAGES, content=body, headers=JSON), 413, "too_large")


async def test_a_body_that_hides_its_size_is_refused_once_it_is_too_large(api: Api) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(MOST_BYTES // 4096):
            yield b" " * 4096
        yield b" "

    response = await api.http.post(PAGES, content=chunks(), headers=JSON)
    assert "content-length" not in response.request.headers
    check_error(response, 413, "too_large")


BAD_JSON = {
    "NaN": b'{"name": NaN}',
    "Infinity": b'{"name": Infinity}',
    "minus Infinity": b"[-Infinity]",
    "a float beyond counting": b'{"every_seconds": 1e999}',
    "a key twice": b'{"name": "a", "name": "b"}',
    "a key twice, once escaped": b'{"name": "a", "n\\u0061me": "b"}',
    "depth 900": b"[" * 900 + b"]" * 900,
    "depth 900 of objects": b'{"a":' * 900 + b"1" + b"}" * 900,
    "a huge number": b'{"every_seconds": 1' + b"0" * 30 + b"}",
    "a number of 100,000 digits": b"1" * 100_000,
    "a number just too large": b"9007199254740992",
    "half a surrogate pair": b'{"name": "\\ud800"}',
    "half a surrogate pair in a key": b'{"\\udfff": 1}',
    "a NUL": b'{"name": "a\\u0000b"}',
    "bytes that are not UTF-8": b'{"name": "\xff"}',
    "UTF-16": '{"name": "a"}'.encode("utf-16"),
    "a byte order mark": b"\xef\xbb\xbf{}",
    "a cut end": b'{"name": ',
    "two values": b"{} {}",
    "no JSON": b"name=a",
    "Python": b"{'name': 'a'}",
}


@pytest.mark.parametrize("what", BAD_JSON)
@pytest.mark.parametrize("kind", ["application/json", "Application/Problem+JSON; charset=x", None])
async def test_a_body_that_is_not_strictly_json_is_refused(
    api: Api, what: str, kind: str | None
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    response = await api.http.post(PAGES, content=BAD_JSON[what], headers=headers)
    check_error(response, 400, "bad_json")


async def test_two_content_types_do_not_smuggle_loose_json_past(api: Api) -> None:
    headers = [("Content-Type", "application/json"), ("Content-Type", "text/plain")]
    body = b'{"name": "a", "name": "b"}'
    for pair in (headers, headers[::-1]):
        check_error(await api.http.post(PAGES, content=body, headers=pair), 400, "bad_json")


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"text"', b"{}", b'{"name": "a", "x": 1}'])
async def test_json_of_the_wrong_shape_is_not_allowed(api: Api, body: bytes) -> None:
    check_error(await api.http.post(PAGES, content=body, headers=JSON), 422, "bad_input")


async def test_a_body_that_is_no_json_at_all_is_not_taken_for_it(api: Api) -> None:
    headers = {"Content-Type": "text/plain"}
    response = await api.http.post(PAGES, content=b'{"name": "a"}', headers=headers)
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize(
    "limit",
    [
        str(10**30),
        "0",
        "-1",
        "501",
        "\uff15",
        "1_0",
        "+5",
        " 5",
        "5.0",
        "5e1",
        "0x5",
        "",
        "9" * 5000,
    ],
)
@pytest.mark.parametrize("path", ["/api/jobs", "/api/schedule", PAGES])
async def test_a_number_that_is_not_plain_or_out_of_bounds_is_not_allowed(
    api: Api, path: str, limit: str
) -> None:
    message = check_error(await api.http.get(path, params={"limit": limit}), 422, "bad_input")
    assert message.startswith("query.limit: ")


broken_router = APIRouter()


@broken_router.get("/api/broken")
async def be_broken() -> None:
    """Raise what nobody expects."""
    raise RuntimeError("an inner detail")


async def test_a_bug_is_answered_in_the_envelope_and_tells_nothing(
    databases: Databases, tmp_path: Path, lines: io.StringIO
) -> None:
    watch = Watch(name="broken", tasks=(), router=f"{__name__}:broken_router")
    async with open_api(await databases.ready(), tmp_path, watches=[watch]) as api:
        response = await api.http.get("/api/broken")
        assert "inner" not in check_error(response, 500, "internal")
        assert (await api.http.get("/api/status")).status_code == 200
    assert "an inner detail" in lines.getvalue()
