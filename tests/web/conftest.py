"""What tests of pages are given."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import async_playwright

from mimawari.net.browser import find_executable
from tests.conftest import Databases
from tests.web.at_work import Stage, open_stage
from tests.web.ground import Browser, open_site


@pytest.fixture
async def stranger(databases: Databases, tmp_path: Path) -> AsyncIterator[Browser]:
    """Somebody who is not logged in."""
    async with open_site(await databases.ready(), tmp_path) as browser:
        yield browser


@pytest.fixture
async def visitor(stranger: Browser) -> Browser:
    """Somebody who is logged in."""
    assert (await stranger.log_in()).status_code == 303
    return stranger


@pytest.fixture
async def visitor_with(
    databases: Databases, tmp_path: Path, given: dict[str, Any]
) -> AsyncIterator[Browser]:
    """Somebody who is logged in where some settings are given."""
    async with open_site(await databases.ready(), tmp_path, **given) as browser:
        assert (await browser.log_in()).status_code == 303
        yield browser


@pytest.fixture(scope="session")
async def chromium() -> AsyncIterator[Chromium]:
    """A browser as people have it, which leaves nothing out."""
    async with async_playwright() as playwright:
        found = find_executable(None)
        browser = await playwright.chromium.launch(executable_path=found, args=["--disable-gpu"])
        yield browser
        await browser.close()


@pytest.fixture
async def stage(databases: Databases, tmp_path: Path) -> AsyncIterator[Stage]:
    """Two watches at work, with their pages and messages."""
    async with open_stage(await databases.ready(), tmp_path) as opened:
        yield opened
