"""Notification targets in a file of all targets: addresses by reference, and never in full."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from mimawari.app.commands.files import sections
from mimawari.app.ops import System, opened
from mimawari.edges.target_file import Action, apply, export
from mimawari.errors import BadInput
from mimawari.notify import queries, targets
from mimawari.notify.models import How, Setting, Target
from mimawari.settings import Settings
from mimawari.watches import INSTALLED
from tests.conftest import Databases

SECTIONS = sections(INSTALLED)
FILE = """version: 1
notify:
- name: 電話
  url: env:PHONE
  watches: [rentals]
  kinds: [rentals.rent_fell]
  how: daily
  daily_at: 12:30
"""


@pytest.fixture
async def system(databases: Databases, tmp_path: Path) -> AsyncIterator[System]:
    settings = Settings(data=tmp_path, database_url=await databases.ready())
    async with opened(settings, INSTALLED) as found:
        yield found


async def put(system: System, text: str, *, is_dry: bool = False) -> list[Action]:
    planned = await apply(system, SECTIONS, "targets.yaml", text, is_dry=is_dry)
    return [plan.action for plan in planned]


async def kept(system: System) -> list[Target]:
    async with system.store.read() as reader:
        return await queries.list_targets(reader)


async def test_a_file_adds_targets_and_an_export_of_them_changes_nothing(system: System) -> None:
    assert await put(system, FILE) == [Action.ADD]
    [found] = await kept(system)
    assert (found.setting.how, found.setting.daily_at) == (How.DAILY, "12:30")
    assert found.setting.url == "env:PHONE"
    text = await export(system, SECTIONS)
    assert await put(system, text) == [Action.SAME]
    assert await export(system, SECTIONS) == text
    assert await put(system, FILE.replace("12:30", "'07:00'")) == [Action.CHANGE]
    assert (await kept(system))[0].setting.daily_at == "07:00"


async def test_an_address_that_is_kept_stands_in_no_file_and_stays(system: System) -> None:
    async with system.store.edit() as tx:
        setting = Setting(url="discord://1234/very-secret-token")
        await targets.add_target(tx, "chat", setting, system.clock.now())
    text = await export(system, SECTIONS)
    assert "very-secret-token" not in text
    assert yaml.safe_load(text)["notify"][0]["url"] == "kept:secret"
    assert await put(system, text) == [Action.SAME]
    assert await put(system, text.replace("language: ja", "language: en")) == [Action.CHANGE]
    [found] = await kept(system)
    assert (found.setting.url, found.setting.language) == (setting.url, "en")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("env:PHONE", "discord://1234/very-secret-token", "line 3: url: an address is a secret"),
        ("env:PHONE", "kept:secret", "line 3: 電話: no address is kept for it here"),
        (
            "rentals.rent_fell",
            "rentals.rent_flew",
            "line 3: 電話: kinds: nothing is called 'rentals.rent_flew'",
        ),
        ("[rentals]", "[radio]", "line 3: 電話: watches: nothing is called 'radio'"),
        ("how: daily", "how: weekly", "line 7: how: "),
        ("12:30", "'25:00'", "line 8: daily_at: "),
    ],
)
async def test_a_bad_file_changes_nothing_and_says_what_is_wrong(
    system: System, old: str, new: str, said: str
) -> None:
    for is_dry in (True, False):
        with pytest.raises(BadInput) as refused:
            await put(system, FILE.replace(old, new), is_dry=is_dry)
        assert said in str(refused.value)
    assert "very-secret-token" not in str(refused.value)
    assert await kept(system) == []
