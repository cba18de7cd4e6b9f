"""Whom a request is for and where it comes from: hosts, origins, proxies, networks."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mimawari.app.http.addresses import Hosts, address_of, network_of
from tests.app.ground import KEY, Api, check_error, open_api
from tests.conftest import Databases

PUBLIC = "https://Watch.example"
OURS = [
    *("localhost", "LOCALHOST:8084", "app.localhost", "127.0.0.1", "127.0.0.1:1", "10.1.2.3:80"),
    *(
        "[::1]",
        "[::1]:8084",
        "[fe80::1]:80",
        "watch.example",
        "WATCH.example:443",
        "watch.example.",
    ),
]
FOREIGN = [
    *("evil.example", "watch.example.evil.example", "notwatch.example", "localhost.evil.example"),
    *(
        "127.0.0.1.evil.example",
        "2130706433",
        "0x7f.1",
        "127.1",
        "",
        "[::1",
        "a b",
        "evil@localhost",
    ),
    *("localhost:evil", "watch.example:", "\u00e9", "evil.example:80:80", "user:localhost"),
]


def scope_of(*headers: tuple[str, str], client: Any = ("::1", 1)) -> dict[str, Any]:
    """Make what a server tells of a request."""
    pairs = [(name.encode(), value.encode("utf-8")) for name, value in headers]
    return {"type": "http", "headers": pairs, "client": client}


@pytest.mark.parametrize("host", OURS)
def test_the_public_name_loopback_names_and_addresses_are_ours(host: str) -> None:
    assert Hosts(PUBLIC).allows(scope_of(("host", host)))


@pytest.mark.parametrize("host", FOREIGN)
def test_any_other_host_is_not_ours(host: str) -> None:
    assert not Hosts(PUBLIC).allows(scope_of(("host", host)))
    assert not Hosts("").allows(scope_of(("host", host)))


def test_no_host_or_a_foreign_one_among_two_is_not_ours() -> None:
    hosts = Hosts(PUBLIC)
    assert not hosts.allows(scope_of())
    assert not hosts.allows(scope_of(("host", "localhost"), ("host", "evil.example")))
    assert not Hosts("").allows(scope_of(("host", "watch.example")))


def test_a_name_beyond_ascii_is_known_as_browsers_send_it() -> None:
    assert Hosts("https://m\u00fcnchen.example").allows(
        scope_of(("host", "xn--mnchen-3ya.example"))
    )


@pytest.mark.parametrize(
    ("host", "origin", "is_ours"),
    [
        ("127.0.0.1:8084", "http://127.0.0.1:8084", True),
        ("127.0.0.1:8084", "http://127.0.0.1", False),
        ("127.0.0.1:8084", "http://localhost:8084", False),
        ("localhost:8084", "http://localhost:3000", False),
        ("localhost", "http://localhost", True),
        ("localhost", "http://localhost:80", True),
        # Proxies that end TLS: one keeps the name, another one names where it has it from.
        ("10.0.0.5", "https://10.0.0.5", True),
        ("127.0.0.1:8084", "https://watch.example", True),
        ("127.0.0.1:8084", "https://watch.example:443", True),
        ("127.0.0.1:8084", "http://watch.example", False),
        ("127.0.0.1:8084", "https://watch.example:8443", False),
        ("watch.example", "https://evil.example", False),
        ("watch.example", "https://watch.example.evil.example", False),
        ("watch.example", "null", False),
        ("watch.example", "", False),
        ("watch.example", "file://", False),
        ("watch.example", "chrome-extension://watch.example", False),
        ("watch.example", "https://watch.example/path", False),
        ("watch.example", "https://user@watch.example", False),
    ],
)
def test_a_form_comes_from_our_own_pages(host: str, origin: str, is_ours: bool) -> None:
    scope = scope_of(("host", host), ("origin", origin))
    assert Hosts(PUBLIC).sent_here(scope) is is_ours


@pytest.mark.parametrize(
    ("site", "is_ours"),
    [("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False)],
)
def test_a_browser_that_names_no_origin_may_say_so_otherwise(site: str, is_ours: bool) -> None:
    scope = scope_of(("host", "localhost"), ("sec-fetch-site", site))
    assert Hosts(PUBLIC).sent_here(scope) is is_ours
    assert Hosts(PUBLIC).sent_here(scope_of(("host", "localhost")))


@pytest.mark.parametrize(
    ("client", "address", "network"),
    [
        (("192.0.2.7", 1), "192.0.2.7", "192.0.2.7"),
        (("2001:db8::7:1", 1), "2001:db8::7:1", "2001:db8::/64"),
        (("::ffff:192.0.2.7", 1), "::ffff:c000:207", "192.0.2.7"),
        (("x" * 5000, 1), "unknown", "unknown"),
        (None, "unknown", "unknown"),
    ],
)
def test_a_client_is_counted_by_what_it_cannot_change(
    client: Any, address: str, network: str
) -> None:
    found = address_of(scope_of(client=client))
    assert found in {address, "::ffff:192.0.2.7"}
    assert network_of(found) == network


@pytest.mark.parametrize(
    "path", ["/api/status", "/", "/login", "/openapi.json", "/static/site.css"]
)
async def test_a_foreign_host_is_answered_with_the_settings_name(api: Api, path: str) -> None:
    for key in ({}, {"X-API-Key": KEY}):
        async with httpx2.AsyncClient(base_url=api.address) as http:
            response = await http.get(path, headers={"Host": "evil.example", **key})
        assert response.status_code == 421
        error = json.loads(response.content)["error"]
        assert error["code"] == "wrong_host"
        assert "MIMAWARI_PUBLIC_URL" in error["message"]


async def test_health_is_told_under_any_name(api: Api) -> None:
    for path in ("/healthz", "/readyz"):
        response = await api.http.get(path, headers={"Host": "evil.example"})
        assert response.status_code == 200


async def test_the_public_address_is_served(databases: Databases, tmp_path: Path) -> None:
    async with open_api(await databases.ready(), tmp_path, public_url=PUBLIC) as api:
        right = await api.http.get("/api/status", headers={"Host": "watch.example"})
        assert right.status_code == 200
        wrong = await api.http.get("/api/status", headers={"Host": "other.example"})
        check_error(wrong, 421, "wrong_host")


@pytest.mark.parametrize(
    ("proxies", "counted"),
    [((), {401, 429}), (("127.0.0.0/8",), {401}), (("10.0.0.1",), {401, 429})],
)
async def test_what_a_proxy_says_of_clients_is_believed_where_it_is_trusted(
    databases: Databases, tmp_path: Path, proxies: tuple[str, ...], counted: set[int]
) -> None:
    given: dict[str, Any] = {"rate": 60, "trusted_proxies": proxies}
    async with open_api(await databases.ready(), tmp_path, **given) as api:
        statuses = set()
        for number in range(10):
            headers = {"X-API-Key": "wrong", "X-Forwarded-For": f"10.9.9.9, 192.0.2.{number}"}
            statuses.add((await api.http.get("/api/status", headers=headers)).status_code)
    assert statuses == counted


async def test_what_a_trusted_proxy_passes_on_unseen_is_one_client(
    databases: Databases, tmp_path: Path
) -> None:
    given: dict[str, Any] = {"rate": 60, "trusted_proxies": ("127.0.0.1",)}
    async with open_api(await databases.ready(), tmp_path, **given) as api:
        statuses = []
        for number in range(10):
            headers = {"X-API-Key": "wrong", "X-Forwarded-For": f"{number}" * 900}
            statuses.append((await api.http.get("/api/status", headers=headers)).status_code)
    assert statuses == [401] * 5 + [429] * 5
