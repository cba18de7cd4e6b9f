"""What every site of the simulated world promises to the world."""

from collections.abc import Mapping
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response


class Part(Protocol):
    """One site of the simulated world."""

    name: str

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        ...

    async def answer(self, request: Request) -> Response:
        """Answer one request as the real site would."""
        ...

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell what is really so now, as a JSON-able value."""
        ...

    def refusal(self) -> Response:
        """Make the page this site shows when it blocks somebody."""
        ...
