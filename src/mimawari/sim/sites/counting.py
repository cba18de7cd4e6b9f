"""A site that counts: every page is a number that grows, and every request is remembered."""

import json
from dataclasses import dataclass, field
from typing import Any

from mimawari.kernel.ports import Clock


@dataclass(slots=True)
class CountingSite:
    """An ASGI app with pages /page/NAME, and /_seen with all it was asked, by its own clock."""

    clock: Clock
    seen: list[dict[str, Any]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        del receive
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        if path == "/_seen":
            await _answer(send, 200, {"seen": self.seen})
        elif path.startswith("/page/"):
            await _answer(send, 200, self._page(path.removeprefix("/page/")))
        else:
            await _answer(send, 404, {"error": "no such page"})

    def _page(self, name: str) -> dict[str, Any]:
        mark = self.clock.mark()
        self.seen.append({"page": name, "at": mark.wall.isoformat(), "ticks": mark.ticks})
        number = sum(entry["page"] == name for entry in self.seen)
        return {"name": name, "number": number}


async def _answer(send: Any, status: int, body: dict[str, Any]) -> None:
    content = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": content})
