"""The APIs keep to their own OpenAPI descriptions, whatever is sent to them."""

from pathlib import Path

from mimawari.app.http.api import make_app, make_internal_app
from mimawari.app.http.edge import HEALTH
from mimawari.kernel.job import State
from mimawari.watches import INSTALLED
from tests.app.description import PUBLIC, REFUSED, check_description, find_described
from tests.app.ground import KEYS, Api, end, open_api, put
from tests.conftest import Databases

MOST_REFUSED = 5
RETRY = "Retry-After"


async def test_the_api_keeps_to_its_description(api: Api, tmp_path: Path) -> None:
    await put(api.store, 3)
    await end(api.store, State.FAILED)
    await check_description(api.sender, tmp_path, PUBLIC["system"])
    assert (await api.http.get("/readyz")).status_code == 200


async def test_every_public_route_is_covered_by_one_test_of_the_description(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_api(await databases.ready(), tmp_path, watches=INSTALLED) as api:
        description = make_app(api.system, KEYS).openapi()
    assert len(description["paths"]) > 40
    for path in description["paths"]:
        covering = [
            name for name, one in PUBLIC.items() if path in find_described(description, one)
        ]
        assert len(covering) == 1, path
    for name, one in PUBLIC.items():
        assert find_described(description, one), name


async def test_what_the_edge_answers_is_described_at_every_route(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_api(await databases.ready(), tmp_path, watches=INSTALLED) as api:
        apps = (make_app(api.system, KEYS), make_internal_app(api.system, KEYS[0]))
    for path, methods in [pair for app in apps for pair in app.openapi()["paths"].items()]:
        for operation in methods.values():
            found = operation["responses"]
            always = {"400", "408", "413"}
            assert found.keys() >= (always if path in HEALTH else always | {"401", "429", "503"})
            for status, header in (("401", "WWW-Authenticate"), ("429", RETRY), ("503", RETRY)):
                assert header in found.get(status, {"headers": header})["headers"], path


def test_at_most_five_classes_of_described_requests_are_refused() -> None:
    assert len(REFUSED) <= MOST_REFUSED
    assert all(one.reason for one in REFUSED)
