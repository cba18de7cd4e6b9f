"""The documents name every setting and every command there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from mimawari.app.cli import app
from mimawari.settings import Settings, names_of

DOCS = Path(__file__).parents[2] / "docs"


def commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Walk to every command that does something, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None or command.invoke_without_command:
        yield path, command
    if inner is None:
        return
    for name, child in inner.items():
        yield from commands(child, f"{path} {name}")


ALL = dict(commands(typer.main.get_command(app), "mimawari"))


def test_every_setting_is_documented_and_no_other() -> None:
    rows = re.findall(r"^\| (`.*?) \|", (DOCS / "settings.md").read_text("utf-8"), re.MULTILINE)
    documented = {tuple(re.findall("`([A-Z_]+)`", row)) for row in rows}
    assert documented == {names_of(field) for field in Settings.model_fields}


def test_every_command_is_documented_and_no_other() -> None:
    assert {"mimawari serve", "mimawari jobs retry"} <= set(ALL)
    text = (DOCS / "commands.md").read_text("utf-8")
    assert set(re.findall("^## `(.*)`$", text, re.MULTILINE)) == set(ALL)


def test_every_command_has_an_example() -> None:
    text = (DOCS / "commands.md").read_text("utf-8")
    for path in ALL:
        assert re.search(rf"^\$ {path}( |$)", text, re.MULTILINE), path


def test_every_option_is_documented_with_its_command() -> None:
    sections = re.split("^## ", (DOCS / "commands.md").read_text("utf-8"), flags=re.MULTILINE)
    for path, command in ALL.items():
        (section,) = [text for text in sections if text.startswith(f"`{path}`\n")]
        options = {name for param in command.params for name in param.opts if name[:2] == "--"}
        missing = {name for name in options - {"--help"} if f"`{name}`" not in section}
        assert not missing, path
