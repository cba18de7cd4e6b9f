"""The internal API keeps to its own description, whoever sends whatever to it."""

from collections.abc import AsyncIterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from mimawari.app.http.api import make_internal_app
from mimawari.kernel.rights import make_token
from mimawari.sites.youtube import SITE
from mimawari.watches.streams.outside import CHECK, RESOLVE
from mimawari.watches.streams.pods.spec import name_pod
from tests.app.description import Covered, Sender, check_description, find_described
from tests.conftest import Databases
from tests.sim.ground import serve
from tests.streams.api_ground import Desk, open_desk

KEY = "the-installations-own-key"
ORIGIN = "http://resolver.example:81"
ROBOTS = f"robots {ORIGIN}"
COVERED = Covered(paths="^/", examples=5)
A_POD_MAY = {
    "LimitIn": {"name": [CHECK, RESOLVE, ROBOTS]},
    "SettledIn": {"name": [CHECK, RESOLVE, ROBOTS]},
    "HoldIn": {"name": [CHECK, RESOLVE, ROBOTS]},
    "SiteIn": {"site": [SITE.name]},
    "FailureIn": {"site": [SITE.name]},
    "KeyIn": {"key": [ROBOTS]},
    "ValueIn": {"key": [ROBOTS]},
}
"""The names that a pod may give, where others are only ever refused."""


@pytest.fixture
async def desk(databases: Databases, tmp_path: Path) -> AsyncIterator[Desk]:
    given: dict[str, Any] = {
        "streams_runner": "kubernetes",
        "internal_key": SecretStr(KEY),
        "streams_resolver_url": f"{ORIGIN}/resolve",
    }
    async with open_desk(await databases.ready(), tmp_path / "data", **given) as desk:
        yield desk


def narrow(document: Mapping[str, Any], monitor_id: str) -> Mapping[str, Any]:
    """Describe only what the pod of a monitor may name, so that most requests are let in."""
    found = deepcopy(dict(document))
    schemas = found["components"]["schemas"]
    names = {**A_POD_MAY, "ClaimIn": {"pod": [name_pod(monitor_id)]}}
    for model, allowed in names.items():
        for field, values in allowed.items():
            schemas[model]["properties"][field] = {"type": "string", "enum": values}
    return found


async def test_a_pods_routes_keep_to_their_description(desk: Desk, tmp_path: Path) -> None:
    app, monitor_id = make_internal_app(desk.api.system, KEY.encode()), await desk.add(1)
    pod = name_pod(monitor_id)
    document = app.openapi()
    assert find_described(document, COVERED) == set(document["paths"])
    async with serve(app) as http:
        sender = Sender(
            address=str(http.base_url).rstrip("/"),
            header=f"X-Internal-API-Key: {make_token(KEY.encode(), pod)}",
            parameters={"path.monitor_id": monitor_id, "query.pod": pod},
        )
        await check_description(sender, tmp_path, COVERED, narrow(document, monitor_id))
        assert (await http.get("/readyz")).status_code == 200


async def test_the_installations_key_is_answered_as_described(desk: Desk, tmp_path: Path) -> None:
    app, monitor_id = make_internal_app(desk.api.system, KEY.encode()), await desk.add(1)
    async with serve(app) as http:
        sender = Sender(
            address=str(http.base_url).rstrip("/"),
            header=f"X-Internal-API-Key: {KEY}",
            parameters={"path.monitor_id": monitor_id},
        )
        # Nearly everything is refused before it is looked at: few requests show how.
        some = Covered(paths="^/", examples=3, options=("--phases", "fuzzing"))
        await check_description(sender, tmp_path, some)
        assert (await http.get("/readyz")).status_code == 200
