"""The routes of the streams watch keep to their own description, whatever is sent to them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mimawari.watches.streams import watch
from tests.app.description import PUBLIC, check_description
from tests.conftest import Databases
from tests.streams.api_ground import MONITORS, open_desk


async def test_the_routes_keep_to_their_description(databases: Databases, tmp_path: Path) -> None:
    assert watch.manners is not None
    often = replace(watch, manners=replace(watch.manners, reads_a_minute=1_000_000))
    async with open_desk(await databases.ready(), tmp_path / "data", often) as desk:
        await desk.stop(await desk.add(1))
        await desk.add(2)
        await check_description(desk.api.sender, tmp_path, PUBLIC["streams"])


@pytest.fixture
async def described(databases: Databases, tmp_path: Path) -> Any:
    async with open_desk(await databases.ready(), tmp_path) as desk:
        return (await desk.http.get("/openapi.json")).json()


async def test_what_cannot_be_used_is_described_as_400_and_nothing_as_422(described: Any) -> None:
    ours = [path for path in described["paths"] if path.startswith(MONITORS)]
    assert len(ours) == 3
    for path in ours:
        for operation in described["paths"][path].values():
            answers = operation["responses"]
            assert "422" not in answers
            for status in ("400", "401", "404", "409", "429", "500"):
                schema = answers[status]["content"]["application/json"]["schema"]
                assert schema == {"$ref": "#/components/schemas/Envelope"}
    assert "HTTPValidationError" not in described["components"]["schemas"]
