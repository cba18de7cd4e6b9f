"""The ground of the tests of pages: the site on a real socket, and a browser-like client."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from mimawari.kernel.ports import Clock
from mimawari.kernel.watch import Watch
from mimawari.watches import INSTALLED
from mimawari.web.session import make_once
from tests.app.ground import KEY, PATIENCE_SECONDS, Api, open_api

HOSTILE = '<script>alert(1)</script>" onload="x'
"""What a stored text must never become on a page: markup."""


def check_harmless(page: str) -> None:
    """Insist that a hostile text is on a page, and is text."""
    assert "&lt;script&gt;alert(1)" in page
    assert "<script>alert" not in page
    assert 'onload="x' not in page


@dataclass(frozen=True, slots=True)
class Browser:
    """Somebody who is logged in, or not, and what stands behind the pages."""

    api: Api
    http: httpx2.AsyncClient

    async def get(self, path: str, **headers: str) -> httpx2.Response:
        """Look at a page."""
        return await self.http.get(path, headers=headers)

    async def see(self, path: str, **headers: str) -> str:
        """Look at a page that is there, and return it."""
        found = await self.get(path, **headers)
        assert found.status_code == 200, found.text
        return found.text

    def speak(self, language: str) -> None:
        """Prefer a language from now on."""
        self.http.headers["Accept-Language"] = language

    async def log_in(self, key: str = KEY) -> httpx2.Response:
        """Give a key."""
        return await self.http.post("/login", data={"key": key})

    async def token(self, path: str = "/") -> str:
        """Return what forms must bring back."""
        found = re.search(r'name="token" value="([0-9a-f]+)"', await self.see(path))
        assert found is not None
        return found[1]

    async def send(self, path: str, **fields: str) -> httpx2.Response:
        """Send a form of the site."""
        return await self.http.post(path, data={"token": await self.token(), **fields})


@asynccontextmanager
async def open_site(
    url: str,
    folder: Path,
    *,
    clock: Clock | None = None,
    watches: Sequence[Watch] = INSTALLED,
    **given: Any,
) -> AsyncIterator[Browser]:
    """Serve the pages, with a visitor who is not logged in yet."""
    async with (
        open_api(url, folder, clock=clock, watches=watches, **given) as api,
        httpx2.AsyncClient(base_url=api.address, timeout=PATIENCE_SECONDS) as http,
    ):
        yield Browser(api, http)


async def open_page(chromium: Chromium, visitor: Browser, locale: str = "en-US") -> Page:
    """Log somebody in with a real browser, by a link that is good for once."""
    context = await chromium.new_context(locale=locale)
    page = await context.new_page()
    word = await make_once(visitor.api.store.sessions)
    await page.goto(f"{visitor.api.address}/login?once={word}")
    return page
