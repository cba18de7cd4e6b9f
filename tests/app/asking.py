"""Asks an API that is served, and insists on its answers."""

import csv
import io
from dataclasses import dataclass
from typing import Any

import httpx2

from tests.app.ground import Api


@dataclass(frozen=True, slots=True)
class Asking:
    """An API and how to ask it."""

    api: Api

    @property
    def http(self) -> httpx2.AsyncClient:
        """A client with a key."""
        return self.api.http

    async def get(self, path: str, **params: Any) -> Any:
        """Ask and insist on an answer."""
        response = await self.http.get(f"/api{path}", params=params)
        assert response.status_code == 200, response.text
        return response.json()

    async def rows(self, path: str, **params: Any) -> list[dict[str, str]]:
        """Ask for a file and read it as a spreadsheet does."""
        response = await self.http.get(f"/api{path}", params={"format": "csv", **params})
        assert response.status_code == 200, response.text
        assert response.headers["content-type"] == "text/csv; charset=utf-8"
        text = response.content.decode("utf-8")
        assert text.startswith("\ufeff")
        return list(csv.DictReader(io.StringIO(text[1:], newline="")))

    async def pages(self, path: str, name: str, given_as: str, **params: Any) -> list[Any]:
        """Follow the pages of a list to its end and return all there is, each page bounded."""
        found: list[Any] = []
        while True:
            page = await self.get(path, **params)
            assert 0 < len(page[name]) <= params["limit"]
            found += page[name]
            if page["next"] is None:
                return found
            params[given_as] = page["next"]

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        """Send a body while nobody works."""
        return await self.http.post(f"/api{path}", json=body)
