"""The front: leads requests to the API or to the pages, and guards the pages as the edge does."""

from typing import Any

from mimawari.app.http.addresses import WRONG_HOST, Hosts, address_of, network_of
from mimawari.app.http.allowance import Allowance
from mimawari.app.http.edge import (
    App,
    Message,
    Receive,
    Refusal,
    Send,
    count,
    read_body,
    refuse,
    replay,
)
from mimawari.kernel.ports import Reporter
from mimawari.kernel.values import Trouble
from mimawari.store.sql.engine import impatient

API = ("/api/", "/internal/")
OF_API = frozenset({"/api", "/healthz", "/readyz", "/openapi.json"})
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    b" connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none';"
    b" frame-ancestors 'none'"
)
HEADERS = [
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"content-security-policy", POLICY),
]


class Front:
    """ASGI: the API under its paths, the pages everywhere else."""

    def __init__(
        self, api: App, pages: App, allowance: Allowance, reporter: Reporter, hosts: Hosts
    ) -> None:
        self._hosts = hosts
        self._api = api
        self._pages = pages
        self._allowance = allowance
        self._reporter = reporter

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Lead a request to where it belongs."""
        if scope["type"] != "http" or _is_for_program(scope):
            await self._api(scope, receive, send)
            return
        await self._show(scope, receive, send)

    async def _show(self, scope: Message, receive: Receive, send: Send) -> None:
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = _guard(message.get("headers", []))
            await send(message)

        try:
            with impatient():
                if not self._hosts.allows(scope):
                    raise Refusal(421, "wrong_host", WRONG_HOST)  # noqa: TRY301 - worded below
                visitor = f"pages {network_of(address_of(scope))}"
                await count(self._allowance, visitor, scope["method"])
                body = await read_body(scope, receive)
                await self._pages(scope, replay(body, receive), send_guarded)
        except Refusal as refusal:
            await refuse(send_guarded, refusal)
        except Exception as error:
            self._reporter.report(_trouble(scope, error))
            if started:
                raise
            await refuse(send_guarded, Refusal(500, "internal", "a bug of ours; the log has it"))


def _is_for_program(scope: Message) -> bool:
    path: str = scope["path"]
    # Whoever gives a key in a header is no browser.
    has_key = any(name == b"x-api-key" for name, _ in scope["headers"])
    return has_key or path in OF_API or path.startswith(API)


def _guard(headers: Any) -> list[Any]:
    """Add every guard but those that the answer brings in its own words."""
    given = {name for name, _ in headers}
    return [*headers, *(one for one in HEADERS if one[0] not in given)]


def _trouble(scope: Message, error: Exception) -> Trouble:
    route = scope.get("route")
    return Trouble(
        component="pages",
        message="a page failed",
        what=f"{scope['method']} {getattr(route, 'path', 'no route')}",
        error=error,
        line={"what": scope["path"], "result": "500"},
    )
