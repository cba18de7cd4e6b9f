"""The routes of notifications: targets, tests that are real, and errors in one envelope."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mimawari.notify import watch as notify
from tests.app.description import PUBLIC, check_description
from tests.app.ground import Api, check_error, open_api
from tests.conftest import Databases
from tests.notify.catcher import Catcher

TARGETS = "/api/notify/targets"


@pytest.fixture
async def api(databases: Databases, tmp_path: Path, catcher: Catcher) -> AsyncIterator[Api]:
    allowed = catcher.settings.allow_hosts
    url = await databases.ready()
    async with open_api(url, tmp_path, watches=(notify,), allow_hosts=allowed) as found:
        yield found


async def add(api: Api, **given: Any) -> dict[str, Any]:
    answer = await api.http.post(TARGETS, json={"name": "phone", "url": "env:HOOK", **given})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_target_is_added_shown_changed_and_removed(api: Api) -> None:
    added = await add(api, kinds=["incident.began"], how="grouped", span="2h", language="en")
    assert added["url"] == "env:HOOK"
    where = f"{TARGETS}/{added['id']}"
    assert (await api.http.get(where)).json() == added
    changed = (await api.http.patch(where, json={"enabled": False, "daily_at": "07:00"})).json()
    same = {**added, "enabled": False, "daily_at": "07:00", "changed_at": changed["changed_at"]}
    assert changed == same
    assert (await api.http.get(TARGETS)).json() == {"targets": [changed]}
    assert (await api.http.delete(where)).status_code == 204
    check_error(await api.http.get(where), 404, "not_found")


async def test_an_address_is_never_shown(api: Api) -> None:
    added = await add(api, url="discord://123456789/very-secret-token")
    assert added["url"] == "discord://***"
    for path in (TARGETS, f"{TARGETS}/{added['id']}"):
        assert "very-secret-token" not in (await api.http.get(path)).text


@pytest.mark.parametrize(
    ("wrong", "code", "said"),
    [
        ({"url": "mailto://u:secret@x.jp"}, "bad_input", "MIMAWARI_SMTP_HOST"),
        ({"url": "nonsense"}, "bad_input", "apprise"),
        ({"url": "env:"}, "bad_input", "env:NAME"),
        ({"url": "file:relative"}, "bad_input", "file:/PATH"),
        ({"kinds": ["incident.never"]}, "bad_kinds", "incident.began"),
        ({"watches": ["radio"]}, "bad_watches", "notify"),
        ({"daily_at": "8:00"}, "bad_input", "08:00"),
        ({"span": "8d"}, "bad_input", "7d"),
        ({"colour": "red"}, "bad_input", "colour"),
        ({"name": "taken"}, "name_taken", "another name"),
    ],
)
async def test_what_cannot_be_taken_is_refused_with_a_sentence(
    api: Api, wrong: dict[str, Any], code: str, said: str
) -> None:
    await add(api, name="taken")
    answer = await api.http.post(TARGETS, json={"name": "new", "url": "env:X", **wrong})
    assert said in check_error(answer, answer.status_code, code)
    assert answer.status_code in {400, 409, 422}
    assert "secret" not in answer.text


async def test_a_test_tells_what_really_happened(api: Api, catcher: Catcher) -> None:
    catcher.answers["/hook-secret"] = (500, "お休み中")
    added = await add(api, url=catcher.url("hook-secret"))
    answer = (await api.http.post(f"{TARGETS}/{added['id']}/test")).json()
    assert (answer["is_sent"], answer["error"]) == (False, "the receiver answered 500")
    [exchange] = answer["exchanges"]
    assert (exchange["status"], exchange["answer"]) == (500, "お休み中")
    assert "hook-secret" not in str(answer)
    assert answer["title"] == catcher.caught[0][1]["title"]
    assert (await api.http.get(f"{TARGETS}/{added['id']}/sends")).json() == {
        "sends": [],
        "next": None,
    }


async def test_the_api_keeps_to_its_description(api: Api, tmp_path: Path) -> None:
    # A test sends: to nowhere, since the variable is not set. Other addresses are refused.
    await add(api, enabled=False)
    await check_description(api.sender, tmp_path, PUBLIC["notify"])
