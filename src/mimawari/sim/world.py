"""The simulated world: made-up sites on one address, a log of all they were asked, and orders."""

import json
import re
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from email.utils import format_datetime
from hashlib import sha256
from html import escape
from http import HTTPStatus
from itertools import islice
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.responses import StreamingResponse as Streaming
from starlette.types import Receive, Scope, Send

from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Clock
from mimawari.sim.chance import chance_of
from mimawari.sim.faults import Asked, Cut, answer_by, read_template
from mimawari.sim.mail_server import Mail
from mimawari.sim.orders import Orders, is_plumbing
from mimawari.sim.part import Part
from mimawari.sim.sites.google_books.site import Books
from mimawari.sim.sites.mercari.items import FRANCHISES, Franchise
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.sites.webhooks import Hooks
from mimawari.sim.sites.yahoo_realestate.names import AREAS
from mimawari.sim.sites.yahoo_realestate.site import Rentals
from mimawari.sim.sites.youtube.site import ORIGIN, Live
from mimawari.text import clean, plain_digits

T = TypeVar("T")

REMEMBERED = 200_000
LISTED = 1000
MOST_LISTED = 10_000
MOST_LETTERS = 2000
KNOWN_PAGES = 20_000
ROBOTS = "robots"
# What follows from a request's address must not depend on what else stands in its Host line.
HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
HOMES = {
    "market": "/search?sort=created_time",
    "rentals": f"/rent/search/{AREAS[0].path}/",
    "books": "/books/v1/volumes?q=subject:fiction&amp;key=demo",
    "live": ORIGIN,
    "hooks": "/hooks/demo",
    "mail": "/mail/",
}
ALLOW_ALL = "User-agent: *\nAllow: /\n"


@dataclass(slots=True)
class Seen:
    """One request as the world saw it; the status comes when the answer does."""

    n: int
    at: str
    ticks: float
    part: str
    method: str
    path: str
    query: str
    user_agent: str
    status: int | None = None
    order: dict[str, Any] | None = None
    searched: dict[str, Any] | None = None


class Log:
    """The latest requests, and exact counts of all there ever were."""

    def __init__(self, clock: Clock, most: int = REMEMBERED) -> None:
        self._clock = clock
        self._kept: deque[Seen] = deque(maxlen=most)
        self._counts: Counter[str] = Counter()

    def add(self, part: str, request: Request) -> Seen:
        """Remember a request before it is answered."""
        mark = self._clock.mark()
        self._counts[part] += 1
        seen = Seen(
            n=self._counts.total(),
            at=mark.wall.isoformat(),
            ticks=mark.ticks,
            part=part,
            method=request.method,
            path=_short(request.scope["path"]),
            query=_short(request.scope["query_string"].decode("latin-1")),
            user_agent=_short(request.headers.get("user-agent", "")),
        )
        self._kept.append(seen)
        return seen

    def list(self, query: Mapping[str, str]) -> dict[str, Any]:
        """List requests after a number, some at a time."""
        after = _number(query, "after", 0, 10**15)
        limit = _number(query, "limit", LISTED, MOST_LISTED)
        found = [asdict(seen) for seen in islice(self._find(query, after), limit)]
        return {"seen": found, "next": found[-1]["n"] if found else after}

    def count(self, query: Mapping[str, str]) -> dict[str, Any]:
        """Count requests; by path only what is remembered can be counted, and it says so."""
        part = query.get("part") or None
        if not query.get("path"):
            total = self._counts.total() if part is None else self._counts[part]
            return {"count": total, "exact": True}
        is_whole = self._counts.total() == len(self._kept)
        return {"count": sum(1 for _ in self._find(query, 0)), "exact": is_whole}

    def _find(self, query: Mapping[str, str], after: int) -> Iterator[Seen]:
        part, path = query.get("part") or None, query.get("path", "")
        first = self._kept[0].n if self._kept else 1
        for seen in islice(self._kept, max(0, after + 1 - first), None):
            if part in {None, seen.part} and seen.path.startswith(path):
                yield seen


class World:
    """An ASGI app: several sites on one address, on our clock, by one seed.

    Its server must send no Server line of its own, since a block is known by that line.
    """

    def __init__(self, clock: Clock, parts: Sequence[Part], seed: int) -> None:
        self.clock = clock
        self.parts = {part.name: part for part in parts}
        self.seed = seed
        self.orders = Orders(clock, seed, tuple(self.parts))
        self.log = Log(clock)
        self._known: dict[str, tuple[str, str]] = {}
        self._own: dict[str, Callable[[Request], Awaitable[Response]]] = {
            "/": self._index,
            "/_seen": self._seen,
            "/_seen/count": self._count,
            "/_control": self._control,
        }

    def find(self, kind: type[T]) -> T:
        """Find the site of a kind."""
        return next(part for part in self.parts.values() if isinstance(part, kind))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            answer = await self.answer(Request(scope, receive))
            await answer(scope, receive, send)

    async def answer(self, request: Request) -> Response:
        """Answer one request: a site's, or one of the world's own."""
        path = request.scope["path"]
        part = next((part for part in self.parts.values() if part.owns(path)), None)
        try:
            _check_host(request)
            if part is not None or path == "/robots.txt":
                return await self._of_part(part or _Robots(), request)
            return await self._of_world(request)
        except BadInput as error:
            envelope = {"error": {"code": error.code, "message": str(error)}}
            return JSONResponse(envelope, 404 if isinstance(error, NotFound) else 400)

    async def _of_part(self, part: Part, request: Request) -> Response:
        path = request.scope["path"]
        loaded_by_page = is_plumbing(path) and part.name != ROBOTS
        seen = self.log.add(f"{part.name}:page" if loaded_by_page else part.name, request)
        order = self.orders.find(part.name, path)
        if order is None:
            answer = await part.answer(request)
        else:
            seen.order = {"id": order.id, "do": order.do}
            chance = chance_of(self.seed, "fault", seen.n)
            answer = await answer_by(order, Asked(request, part, self.clock.now(), chance))
        seen.searched = request.scope.get("state", {}).get("searched")
        answer = self._unless_known(request, answer)
        is_cut = isinstance(answer, Cut) and answer.start is None
        seen.status = None if is_cut else answer.status_code
        return answer

    def _unless_known(self, request: Request, answer: Response) -> Response:
        """Mark a page by its content, and say "not modified" to those who know it."""
        is_whole = answer.status_code == HTTPStatus.OK and not isinstance(answer, Cut | Streaming)
        if request.method not in {"GET", "HEAD"} or not is_whole or not answer.body:
            return answer
        tag = f'"{sha256(answer.body).hexdigest()[:24]}"'
        url = str(request.url)[:MOST_LETTERS]
        known = self._known.pop(url, ("", ""))
        if known[0] != tag:
            known = (tag, format_datetime(self.clock.now(), usegmt=True))
        self._known[url] = known
        if len(self._known) > KNOWN_PAGES:
            del self._known[next(iter(self._known))]
        marks = {"etag": known[0], "last-modified": known[1]}
        asked_tag = request.headers.get("if-none-match")
        asked_time = request.headers.get("if-modified-since")
        if asked_tag == tag or (asked_tag is None and asked_time == known[1]):
            return Response(status_code=304, headers=marks)
        answer.headers.update(marks)
        return answer

    async def _of_world(self, request: Request) -> Response:
        path = request.scope["path"]
        if path in self._own:
            return await self._own[path](request)
        if path.startswith("/_truth/"):
            part = self.parts.get(path.removeprefix("/_truth/"))
            if part is None:
                raise NotFound(f"there are {', '.join(self.parts)}")
            return JSONResponse(part.truth(request.query_params))
        if path.startswith("/_control/") and request.method == "DELETE":
            self.orders.remove(_whole("an order's id", path.removeprefix("/_control/"), 10**9))
            return JSONResponse({"removed": 1})
        raise NotFound("there is no such page in this world")

    async def _index(self, request: Request) -> Response:
        listed = "".join(
            f'<li><a href="{HOMES.get(name, "/")}">{escape(name)}</a>'
            f' (<a href="/_truth/{escape(name)}">what is really so</a>)</li>'
            for name in self.parts
        )
        page = read_template("index.html").substitute(
            now=self.clock.now().isoformat(timespec="seconds"),
            seed=self.seed,
            count=self.log.count({})["count"],
            parts=listed,
            address=escape(str(request.base_url).rstrip("/")),
        )
        return HTMLResponse(page)

    async def _seen(self, request: Request) -> Response:
        return JSONResponse(self.log.list(request.query_params))

    async def _count(self, request: Request) -> Response:
        return JSONResponse(self.log.count(request.query_params))

    async def _control(self, request: Request) -> Response:
        match request.method:
            case "POST":
                return JSONResponse(self.orders.add(_parse(await request.body())), 201)
            case "DELETE":
                return JSONResponse({"removed": self.orders.clear()})
            case _:
                return JSONResponse({"orders": self.orders.list()})


def make_world(
    clock: Clock, seed: int = 1, franchises: Collection[Franchise] = FRANCHISES
) -> World:
    """Make the world with all its sites; its market may be a smaller one."""
    sites = (MarketSite(clock, seed, franchises), Rentals(clock, seed), Books(clock, seed))
    return World(clock, (*sites, Live(clock, seed), Hooks(clock), Mail(clock)), seed)


class _Robots:
    """What every robot may do, unless an order says otherwise."""

    name = ROBOTS

    def owns(self, path: str) -> bool:
        return path == "/robots.txt"

    async def answer(self, request: Request) -> Response:
        del request
        return PlainTextResponse(ALLOW_ALL)

    def truth(self, query: Mapping[str, str]) -> str:
        del query
        return ALLOW_ALL

    def refusal(self) -> Response:
        return PlainTextResponse("Forbidden", 403)


def _check_host(request: Request) -> None:
    if not HOST.fullmatch(request.headers.get("host", "world")):
        raise BadInput("Host is no name of a host")


def _short(text: str) -> str:
    return clean(text)[:MOST_LETTERS]


def _parse(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadInput("an order is written in JSON") from error


def _whole(name: str, text: str, most: int) -> int:
    try:
        number = int(plain_digits(text))
    except ValueError as error:
        raise BadInput(f"{name} is a whole number") from error
    if not 0 <= number <= most:
        raise BadInput(f"{name} is at most {most}")
    return number


def _number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    return _whole(name, query[name], most) if name in query else default
