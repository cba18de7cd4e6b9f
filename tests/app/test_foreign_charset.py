"""Text of any language comes back as it was sent, whatever a database takes for usual."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from mimawari.watches import INSTALLED
from tests.app.ground import Api, open_api
from tests.conftest import Databases

NAME = "鬼滅の刃 𠮷野家 🔥👨‍👩‍👧"
CHARSET = (
    "SELECT default_character_set_name FROM information_schema.schemata WHERE schema_name = :name"
)


async def charset_of(api: Api) -> str:
    """Return the character set that tables of the database have unless they name another."""
    name = api.store.database.url.database
    async with api.store.read() as reader:
        return str((await reader.execute(text(CHARSET), {"name": name})).scalar_one())


async def send(api: Api, path: str, body: dict[str, Any]) -> Any:
    """Send a body that is taken, and return the answer."""
    answer = await api.http.post(f"/api{path}", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


@pytest.mark.parametrize("charset", ["latin1", "utf8mb3", "cp932"])
async def test_names_of_any_language_come_back_as_they_were_sent(
    charset: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh("mariadb")
    name = url.rpartition("/")[2]
    async with (
        open_api(databases.fresh("mariadb"), tmp_path) as other,
        other.store.database.write() as session,
    ):
        await session.execute(text(f"ALTER DATABASE `{name}` CHARACTER SET {charset}"))
    async with open_api(url, tmp_path, watches=INSTALLED) as api:
        assert await charset_of(api) == charset
        ip = await send(api, "/v1/ips", {"name": NAME, "keyword": NAME, "tags": [NAME]})
        product = await send(
            api, "/products", {"name": NAME, "setting": {"keyword": NAME, "exclusions": ["🈲禁"]}}
        )
        target = await send(api, "/notify/targets", {"name": NAME, "url": "json://example.com/x"})
        found = (await api.http.get(f"/api/v1/ips/{ip['id']}")).json()
        assert (found["name"], found["keyword"], found["tags"]) == (NAME, NAME, [NAME])
        found = (await api.http.get(f"/api/products/{product['id']}")).json()
        assert (found["name"], found["setting"]["keyword"]) == (NAME, NAME)
        assert found["setting"]["exclusions"] == ["🈲禁"]
        found = (await api.http.get(f"/api/notify/targets/{target['id']}")).json()
        assert found["name"] == NAME
        # What is searched for is compared as it was sent, too.
        found = (await api.http.get("/api/v1/ips", params={"search": "滅の刃 𠮷"})).json()
        assert [one["name"] for one in found["ips"]] == [NAME]
        again = await api.http.post("/api/v1/ips", json={"name": NAME.replace("🔥", "❄")})
        assert again.status_code == 201
