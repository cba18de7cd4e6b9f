"""The ground of the world's tests: a world on a real socket, a toy site, orders and proofs."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import httpx2
import uvicorn
from joserfc import jws
from joserfc.jwk import ECKey
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp

from mimawari.app.http.listening import listen
from mimawari.errors import BadInput

PATIENCE_SECONDS = 60.0
PAGE = '<ul class="list wide"><li class="row" data-testid="row" id="a">見回り</li></ul>'
REPLY = {"items": [{"name": "見回り", "price": 5}], "next": None}


@dataclass(slots=True)
class Toy:
    """A site with one page that can be changed, one API and one picture."""

    name: str = "toy"
    page: str = PAGE
    bodies: list[bytes] = field(default_factory=list)

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return path.startswith((f"/{self.name}/", f"/_{self.name}/"))

    async def answer(self, request: Request) -> Response:
        """Answer one request."""
        self.bodies.append(await request.body())
        if request.url.path.endswith("/api"):
            return JSONResponse(REPLY)
        return HTMLResponse(self.page)

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell what is asked for."""
        if "bad" in query:
            raise BadInput("that is bad")
        return {"page": self.page, **query}

    def refusal(self) -> Response:
        """Turn somebody away."""
        return HTMLResponse(f"{self.name} says no", 418)


@asynccontextmanager
async def serve(app: ASGIApp) -> AsyncIterator[httpx2.AsyncClient]:
    """Serve an app on a free port of loopback."""
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", server_header=False, timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as taken:
        serving = asyncio.create_task(server.serve([taken]))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        try:
            async with httpx2.AsyncClient(
                base_url=address, timeout=PATIENCE_SECONDS, verify=False
            ) as http:
                yield http
        finally:
            server.should_exit = True
            await serving


async def order(http: httpx2.AsyncClient, do: str, **more: Any) -> dict[str, Any]:
    """Order that something goes wrong."""
    reply = await http.post("/_control", json={"part": "toy", "do": do, **more})
    assert reply.status_code == 201, reply.text
    placed: dict[str, Any] = reply.json()
    return placed


KEY = ECKey.generate_key("P-256", private=True)


def sign(
    claims: Any, *, header: Mapping[str, Any] | None = None, key: ECKey = KEY, tail: str = ""
) -> str:
    """Write a proof with the claims and the header given."""
    protected = {"typ": "dpop+jwt", "alg": "ES256", "jwk": KEY.as_dict(private=False)}
    proof = jws.serialize_compact(
        {**protected, **(header or {})}, json.dumps(claims).encode(), key, algorithms=["ES256"]
    )
    return proof + tail


@dataclass(slots=True)
class Prover:
    """Writes a new good proof for every request."""

    host: str
    now: datetime
    made: int = 0

    def claims(self, method: str, path: str) -> dict[str, Any]:
        """Return what a good proof claims."""
        self.made += 1
        return {
            "iat": int(self.now.timestamp()),
            "jti": f"proof-{self.made}",
            "htu": f"http://{self.host}{path}",
            "htm": method,
            "uuid": "a-device",
        }

    def headers(self, method: str, path: str) -> dict[str, str]:
        """Return the headers of a request that the market takes."""
        return {"DPoP": sign(self.claims(method, path)), "X-Platform": "web"}
