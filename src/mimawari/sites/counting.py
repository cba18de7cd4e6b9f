"""Reads the pages of the counting site."""

import asyncio
from dataclasses import dataclass

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from mimawari.errors import Blocked, Gone, Invalid, Transient

SITE = "counting"
DEADLINE_SECONDS = 10.0
MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says."""

    name: str
    number: int


class _Page(BaseModel):
    model_config = ConfigDict(strict=True)
    name: str
    number: int


async def fetch_page(http: httpx2.AsyncClient, url: str) -> Page:
    """Read one page, within a deadline and a size."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS), http.stream("GET", url) as reply:
            _check(reply.status_code)
            body = bytearray()
            async for chunk in reply.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise Invalid(f"the page is larger than {MOST_BYTES} bytes")
    except (httpx2.HTTPError, TimeoutError) as error:
        raise Transient(f"{type(error).__name__}: {error}") from error
    return parse_page(bytes(body))


def parse_page(body: bytes) -> Page:
    """Read what a page says, or refuse it whole."""
    try:
        page = _Page.model_validate_json(body)
    except ValidationError as error:
        raise Invalid("the page is not what this site writes", page=body) from error
    return Page(page.name, page.number)


def _check(status: int) -> None:
    if status in {404, 410}:
        raise Gone(f"the site answered {status}")
    if status in {403, 429}:
        raise Blocked(SITE, f"the site answered {status}")
    if status != 200:  # noqa: PLR2004 - the one status that means a page
        raise Transient(f"the site answered {status}")
