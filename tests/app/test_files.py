"""One file of all targets: what is exported changes nothing, and a bad file changes nothing."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from mimawari.app.commands.files import sections
from mimawari.app.ops import System, opened
from mimawari.edges.target_file import Action, Planned, apply, export
from mimawari.errors import BadInput
from mimawari.settings import Settings
from mimawari.watches import INSTALLED
from tests.app.terminal import Terminal
from tests.conftest import Databases

ALL = """\
version: 1
hot:
- name: 鬼滅の刃
  tags: [剣]
- {name: Spy, keyword: スパイファミリー, weight: 2, active: false}
prices:
- name: Switch
  keyword: Nintendo Switch 有機EL
  min_price: 10000
  exclusions: [ジャンク]
  target_price: 25000
rentals:
- {url: "https://realestate.yahoo.co.jp/rent/search/03/13/13104/", every: 6h}
books:
- name: design
  queries: ['intitle:設計']
  google_books: {langRestrict: ja}
streams:
- stream_url: https://youtu.be/abcdefghijk
  callback_url: https://203.0.114.5/hook
  config:
    blackout_threshold_sec: 20
    scheduled_start_time: 2026-12-01T20:00:00+09:00
    maintenance: [{from: 2026-12-01T00:00:00Z, to: 2026-12-01T01:00:00Z}]
  metadata: {channel: テスト}
"""
COUNT = 6


@pytest.fixture
async def system(databases: Databases, tmp_path: Path) -> AsyncIterator[System]:
    """The whole system, with nothing in it."""
    url = await databases.ready()
    settings = Settings(data=tmp_path, database_url=url, webhook_key=SecretStr("a secret"))
    async with opened(settings, INSTALLED) as found:
        yield found


async def put(system: System, text: str, *, is_dry: bool = False) -> list[Planned]:
    return await apply(system, sections(INSTALLED), "targets.yaml", text, is_dry=is_dry)


async def written(system: System) -> str:
    return await export(system, sections(INSTALLED))


def actions(planned: list[Planned]) -> list[Action]:
    return [plan.action for plan in planned]


async def test_an_export_of_all_watches_changes_nothing_when_it_is_applied(system: System) -> None:
    assert actions(await put(system, ALL)) == [Action.ADD] * COUNT
    text = await written(system)
    assert actions(await put(system, text)) == [Action.SAME] * COUNT
    assert await written(system) == text
    assert {entry.member.partition(":")[0] for entry in await system.store.schedule.list(50)} >= {
        *("hot", "prices", "rentals", "books", "streams")
    }


async def test_an_empty_system_is_exported_and_applied_too(system: System) -> None:
    text = await written(system)
    assert yaml.safe_load(text) == {"version": 1} | {watch.name: [] for watch in INSTALLED}
    assert await put(system, text) == []


async def test_a_dry_run_tells_the_same_and_changes_nothing(system: System) -> None:
    before = await written(system)
    assert actions(await put(system, ALL, is_dry=True)) == [Action.ADD] * COUNT
    assert await written(system) == before


async def test_only_what_differs_is_changed_and_named(system: System) -> None:
    await put(system, ALL)
    other = ALL.replace("25000", "24000").replace("every: 6h", "every: 12h")
    other = other.replace("blackout_threshold_sec: 20", "blackout_threshold_sec: 25")
    changed = [plan for plan in await put(system, other) if plan.action is Action.CHANGE]
    assert {plan.section: plan.fields for plan in changed} == {
        "prices": ("target_price",),
        "rentals": ("every",),
        "streams": ("config",),
    }
    assert actions(await put(system, other)) == [Action.SAME] * COUNT


async def test_what_a_file_does_not_name_stays(system: System) -> None:
    await put(system, ALL)
    before = await written(system)
    assert await put(system, "version: 1\nhot: []\n") == []
    assert await written(system) == before


BAD = [
    ("version: 1\nhot:\n- {name: a, weight: heavy}\n", "line 3: weight: "),
    ("version: 1\nhot:\n- name: a\n  colour: red\n", "line 4: colour: "),
    ("version: 1\nhot: 7\n", "line 2: hot: give a list"),
    ("version: 2\n", "line 1: version: "),
    ("hot: []\n", "line 1: version: "),
    ("version: 1\nradio: []\n", "line 2: radio is no watch"),
    ("version: 1\nhot:\n- name: a\n- name: a\n", "line 4: a is named twice"),
    ("version: 1\nhot: []\nhot: []\n", "line 3: hot stands here twice"),
    ("version: 1\nhot: &x []\n", "line 2: & and *"),
    ("version: 1\nhot: !!python/object:os.system []\n", "line 2: ! begins a tag"),
    ("version: 1\n\thot: []\n", "line 2: a tab"),
    ("- 1\n", "line 1: give version"),
    ("", "line 1: it is empty"),
    ("version: 1\nprices:\n- {name: a, keyword: a, min_price: 9, max_price: 5}\n", "line 3: max_"),
    ("version: 1\nrentals:\n- url: https://example.org/\n  every: 6h\n", "line 3: 'https:"),
    ("version: 1\nbooks:\n- {name: a, queries: []}\n", "line 3: queries: give"),
    ("version: 1\nbooks:\n- {name: a, queries: [x], interval: often}\n", "line 3: "),
    ("version: 1\nstreams:\n- stream_url: https://example.org/\n  callback_url: x\n", "line 3: "),
]


@pytest.mark.parametrize(("text", "said"), BAD)
async def test_a_bad_file_names_the_line_and_changes_nothing(
    system: System, text: str, said: str
) -> None:
    good = "books:\n- {name: good, queries: [good]}\n"
    whole = text + good if text.startswith("version") and "books" not in text else text
    before = await written(system)
    with pytest.raises(BadInput) as refused:
        await put(system, whole)
    assert f"targets.yaml, {said}" in str(refused.value)
    assert await written(system) == before


async def test_all_that_is_wrong_is_told_at_once(system: System) -> None:
    text = "version: 1\nhot:\n" + "- {name: a, x: 1}\n" * 12
    with pytest.raises(BadInput, match=r"line 3: .*line 12: .*and [0-9]+ more"):
        await put(system, text)


async def test_a_callback_that_may_not_be_called_changes_nothing(system: System) -> None:
    with pytest.raises(BadInput, match="not public"):
        await put(system, ALL.replace("203.0.114.5", "127.0.0.1"))
    assert yaml.safe_load(await written(system))["hot"] == []


async def test_a_stream_that_can_never_be_reached_changes_nothing(system: System) -> None:
    opened = {"streams_platforms": ("youtube", "hls")}
    wide = replace(system, settings=system.settings.model_copy(update=opened))
    text = ALL.replace("https://youtu.be/abcdefghijk", "https://10.0.0.1/a.m3u8")
    with pytest.raises(BadInput, match=r"10\.0\.0\.1 is not public"):
        await put(wide, text)
    assert yaml.safe_load(await written(system))["hot"] == []


def test_the_commands_write_and_take_a_file(terminal: Terminal, tmp_path: Path) -> None:
    file = tmp_path / "targets.yaml"
    file.write_text(ALL, encoding="utf-8")
    given: dict[str, Any] = {"WEBHOOK_SIGNING_KEY": "a secret"}
    dry = terminal.run("apply", str(file), "--dry-run", **given)
    assert "Nothing was changed; it would be: 6 added, 0 changed, 0 same." in dry.out
    assert "6 added, 0 changed, 0 same." in terminal.run("apply", str(file), **given).out
    copy = tmp_path / "copy.yaml"
    assert "Wrote" in terminal.run("export", "--out", str(copy), **given).out
    assert terminal.run("export", **given).out == copy.read_text("utf-8")
    again = terminal.run("apply", str(copy), "--json", **given).json()
    assert {plan["action"] for plan in again} == {"same"}
    assert "no such" in terminal.run("apply", str(tmp_path / "none")).refused().lower()
