"""Reads the pages of the counting site."""

from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel, ConfigDict, ValidationError

from mimawari.errors import Invalid
from mimawari.net.page import Http, Site

SITE = Site(name="counting", most_bytes=64 * 1024, deadline_for=timedelta(seconds=10))


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says."""

    name: str
    number: int


class _Page(BaseModel):
    model_config = ConfigDict(strict=True)
    name: str
    number: int


async def fetch_page(http: Http, url: str) -> Page:
    """Read one page."""
    return parse_page((await http.fetch(SITE, url)).body)


def parse_page(body: bytes) -> Page:
    """Read what a page says, or refuse it whole."""
    try:
        page = _Page.model_validate_json(body)
    except ValidationError as error:
        raise Invalid("the page is not what this site writes", page=body) from error
    return Page(page.name, page.number)
