"""A simulated receiver of webhooks, which takes only those that are signed and fresh."""

import hmac
import json
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from hashlib import sha256
from html import escape
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from mimawari.errors import BadInput
from mimawari.kernel.ports import Clock
from mimawari.sim.faults import read_template
from mimawari.text import clean, one_line

KEY = "simulated-webhook-key"
REMEMBERED = 10_000
SHOWN = 100
FRESH_FOR = timedelta(seconds=300)
MOST_LETTERS = 200
_PATH = re.compile(r"/hooks/([A-Za-z0-9._-]{1,100})")
_NUMBER = re.compile(r"[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One webhook as it arrived."""

    n: int
    at: str
    name: str
    event_id: str
    timestamp: str
    is_verified: bool
    body: Any
    """What its JSON says; None where it is none."""
    status: int


class Hooks:
    """Takes webhooks at any name below `/hooks/`, and remembers each of them."""

    name = "hooks"

    def __init__(self, clock: Clock, key: str = KEY) -> None:
        self._clock = clock
        self._key = key.encode()
        self._count = 0
        self._kept: deque[Delivery] = deque(maxlen=REMEMBERED)

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return path.startswith("/hooks/")

    async def answer(self, request: Request) -> Response:
        """Take a webhook, or show those that came."""
        found = _PATH.fullmatch(request.url.path)
        if found is None:
            return PlainTextResponse("Not Found", 404)
        if request.method == "POST":
            return Response(status_code=self._take(found[1], request, await request.body()))
        if request.method in {"GET", "HEAD"}:
            return self._show(found[1])
        return PlainTextResponse("Method Not Allowed", 405, {"allow": "GET, HEAD, POST"})

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell what came, perhaps to one name only or after a number."""
        after = query.get("after", "0")
        if not _NUMBER.fullmatch(after):
            raise BadInput("after is a whole number")
        name = query.get("name") or None
        return {
            "count": self._count,
            "deliveries": [asdict(one) for one in self._list(name) if one.n > int(after)],
        }

    def refusal(self) -> Response:
        """Make the page this site shows when it blocks somebody."""
        return PlainTextResponse("Forbidden", 403)

    def _list(self, name: str | None) -> list[Delivery]:
        return [one for one in self._kept if name in {None, one.name}]

    def _take(self, name: str, request: Request, body: bytes) -> int:
        signature, timestamp, event_id = (
            clean(request.headers.get(f"x-{line}", ""))[:MOST_LETTERS]
            for line in ("signature-256", "timestamp", "event-id")
        )
        is_verified = self._is_signed(signature, timestamp, body) and self._is_fresh(timestamp)
        self._count += 1
        delivery = Delivery(
            n=self._count,
            at=self._clock.now().isoformat(),
            name=name,
            event_id=event_id,
            timestamp=timestamp,
            is_verified=is_verified,
            body=_parse(body),
            status=204 if is_verified else 401,
        )
        self._kept.append(delivery)
        return delivery.status

    def _is_signed(self, signature: str, timestamp: str, body: bytes) -> bool:
        digest = hmac.new(self._key, timestamp.encode() + b"." + body, sha256).hexdigest()
        return hmac.compare_digest(f"sha256={digest}".encode(), signature.encode())

    def _is_fresh(self, timestamp: str) -> bool:
        if not _NUMBER.fullmatch(timestamp):
            return False
        off = abs(self._clock.now().timestamp() - int(timestamp))
        return off <= FRESH_FOR.total_seconds()

    def _show(self, name: str) -> Response:
        rows = "".join(map(_row, reversed(self._list(name)[-SHOWN:])))
        page = read_template("hooks.html").substitute(name=escape(name), rows=rows)
        return HTMLResponse(page)


def _row(one: Delivery) -> str:
    said = json.dumps(one.body, ensure_ascii=False)
    cells = (one.n, one.at, one.status, one.event_id, one_line(said, most=1000))
    return f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"


def _parse(body: bytes) -> Any:
    """Read JSON that can be told again, which neither a NaN nor half a character can."""
    try:
        said = json.loads(body)
        json.dumps(said, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return None
    return said
