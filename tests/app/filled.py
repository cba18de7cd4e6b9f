"""The screens that tests of a watch's commands are given: on a filled folder, and on nothing."""

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.app.screen import Screen


@dataclass(frozen=True, slots=True)
class Behind:
    """What is behind the screens of a watch, which its folder says by a fixture `behind`."""

    watch: str
    fill: Callable[[Path], Coroutine[Any, Any, None]]
    variables: dict[str, str] = field(default_factory=dict)

    def open(self, data: Path) -> Screen:
        """Open a screen on a data folder."""
        return Screen(data, self.watch, self.variables)


@pytest.fixture(scope="module")
def filled_once(behind: Behind, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that is filled once and stays as it is."""
    folder = tmp_path_factory.mktemp("filled")
    asyncio.run(behind.fill(folder))
    return folder


@pytest.fixture
def filled(behind: Behind, filled_once: Path, tmp_path: Path) -> Screen:
    """A screen on a copy of it."""
    shutil.copytree(filled_once, tmp_path / "data")
    return behind.open(tmp_path / "data")


@pytest.fixture
def empty(behind: Behind, tmp_path: Path) -> Screen:
    """A screen with nothing behind it."""
    return behind.open(tmp_path / "data")
