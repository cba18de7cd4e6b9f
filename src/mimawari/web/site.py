"""The site: its routes, who may see them, and the live events that pages listen to."""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from mimawari.app.http.addresses import Hosts, address_of, network_of
from mimawari.app.http.guesses import Guesses
from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound, StoreDown
from mimawari.kernel.sessions import KEPT_FOR
from mimawari.kernel.signal import ENDS, JOBS, OUTBOX, SCHEDULE
from mimawari.kernel.signals import Bell
from mimawari.text import clean
from mimawari.web.session import BROWSER, BROWSER_FOR, COOKIE, Session, Sessions
from mimawari.web.visit import Visit, parse_form
from mimawari.web.words import LANGUAGES, Words, choose_language

Page = Callable[[Visit], Awaitable[Response]]
Listed = tuple[str, Page, tuple[str, ...]]
"""Where a page is, what makes it, and how it is asked for."""
_STATIC = Path(__file__).parent / "static"
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
LIVE_FOR = timedelta(seconds=15)
CALM_SECONDS = 1.0
SECOND = timedelta(seconds=1)
ATTEMPTS, ATTEMPTS_OF_ALL, ATTEMPTS_PER = 10, 100, timedelta(minutes=10)
"""Log-in attempts allowed from one network, and in total."""
YEAR_SECONDS = 365 * 86400


class Site:
    """All pages of one installation."""

    def __init__(
        self, system: System, keys: tuple[bytes, ...], hosts: Hosts, guesses: Guesses
    ) -> None:
        self.system = system
        self._hosts = hosts
        self._guesses = guesses
        self.sessions = Sessions(keys, system.store.sessions, system.clock)

    def route(self, path: str, page: Page, methods: tuple[str, ...] = ("GET",)) -> Route:
        """Make a route to a page that only those see who are logged in."""

        async def answer(request: Request) -> Response:
            try:
                session = await self._find(request)
            except StoreDown as error:
                return await self._answer(request, None, _fail(error))
            if session is None:
                return Response(status_code=303, headers={"Location": "/login"})
            return await self._answer(request, session, page)

        return Route(path, answer, methods=list(methods))

    async def _find(self, request: Request) -> Session | None:
        return await self.sessions.find(request.cookies.get(COOKIE), address_of(request.scope))

    def open_route(self, path: str, page: Page, methods: tuple[str, ...] = ("GET",)) -> Route:
        """Make a route to a page that everybody sees."""

        async def answer(request: Request) -> Response:
            return await self._answer(request, None, page)

        return Route(path, answer, methods=list(methods))

    async def _answer(self, request: Request, session: Session | None, page: Page) -> Response:
        form = parse_form(await request.body()) if request.method == "POST" else {}
        visit = Visit(
            system=self.system,
            request=request,
            session=session,
            words=Words(
                choose_language(
                    request.cookies.get("lang"), request.headers.get("accept-language", "")
                )
            ),
            zone=self._zone(request.cookies.get("zone")),
            form=form,
        )
        if request.method == "POST" and not self._hosts.sent_here(request.scope):
            said = visit.words("problem.origin")
            return visit.page("problem.html", 403, what="problem.input", said=said)
        try:
            if session is not None and request.method == "POST":
                _check_form(session, form)
            return await page(visit)
        except StoreDown as error:
            return visit.page(
                "problem.html", 503, what="problem.store", said=visit.reason(str(error))
            )
        except BadInput as error:
            status = 404 if isinstance(error, NotFound) else 422
            return visit.page(
                "problem.html", status, what="problem.input", said=visit.problem(error)
            )

    def _zone(self, name: str | None) -> ZoneInfo:
        with suppress(ZoneInfoNotFoundError, ValueError, OSError):
            if name and len(name) < 64:  # noqa: PLR2004 - no zone has so long a name
                return ZoneInfo(name)
        return self.system.settings.zone

    async def log_in(self, visit: Visit) -> Response:
        """Ask for a key, or take one: from the form, or from a link that is good for once."""
        once = visit.request.query_params.get("once")
        if once is not None and await self.system.store.sessions.redeem(once):
            return await self._enter(visit, 0)
        if visit.request.method == "POST":
            return await self._take_key(visit)
        problem = visit.words("login.used") if once is not None else None
        return visit.page("login.html", problem=problem)

    async def _take_key(self, visit: Visit) -> Response:
        until = await self._count_attempt(visit)
        if until is not None:
            wait = until - self.system.clock.now()
            problem = visit.words("login.too_many", span=visit.span(max(wait, SECOND)))
            answer = visit.page("login.html", 429, problem=problem)
            answer.headers["Retry-After"] = str(max(1, math.ceil(wait.total_seconds())))
            return answer
        which = self.sessions.matches(visit.form.get("key", "").strip())
        if which is None:
            return visit.page("login.html", 401, problem=visit.words("login.wrong"))
        answer = await self._enter(visit, which)
        # From now on this browser has its own limit of attempts.
        self._set_cookie(visit, answer, BROWSER, self.sessions.make_mark(which))
        return answer

    async def _count_attempt(self, visit: Visit) -> datetime | None:
        """Count a log-in attempt before its key is compared; return when the next is allowed.

        A browser that has logged in with a key before has its own limit, so that using up the
        limits of a network or in total does not lock it out.
        """
        mark = self.sessions.find_mark(visit.request.cookies.get(BROWSER))
        if mark is not None:
            return await self._guesses.take(f"login {mark}", ATTEMPTS, ATTEMPTS_PER)
        network = network_of(address_of(visit.request.scope))
        until = await self._guesses.take(f"login {network}", ATTEMPTS, ATTEMPTS_PER)
        return until or await self._guesses.take("login", ATTEMPTS_OF_ALL, ATTEMPTS_PER)

    def _set_cookie(self, visit: Visit, answer: Response, name: str, value: str) -> None:
        kept_for = BROWSER_FOR if name == BROWSER else KEPT_FOR
        answer.set_cookie(
            name,
            value,
            max_age=int(kept_for.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=self._hosts.is_secure or visit.request.url.scheme == "https",
        )

    async def _enter(self, visit: Visit, which: int) -> Response:
        agent = visit.request.headers.get("user-agent", "")
        cookie = await self.sessions.begin(which, address_of(visit.request.scope), agent)
        answer = visit.go("/")
        self._set_cookie(visit, answer, COOKIE, cookie)
        return answer

    async def log_out(self, visit: Visit) -> Response:
        """End the session, for every copy of its cookie."""
        if visit.session is not None:
            await self.sessions.end(visit.session)
        answer = visit.go("/login")
        answer.delete_cookie(COOKIE)
        return answer

    async def speak(self, visit: Visit) -> Response:
        """Change the language, and go back to where the visitor was."""
        language = visit.choice("to", *LANGUAGES)
        back = clean(visit.request.query_params.get("back", "/"))
        # Only to pages of our own: two slashes would lead to another site.
        is_ours = back.startswith("/") and not back.startswith(("//", "/\\"))
        answer = visit.go(back if is_ours else "/")
        answer.set_cookie("lang", language, max_age=YEAR_SECONDS, samesite="lax")
        return answer

    async def listen(self, visit: Visit) -> Response:
        """Tell a page, as long as it listens, whenever something has changed."""
        # It rings for all that happens from when the answer has begun.
        bell = self.system.store.signal.bell(JOBS, SCHEDULE, OUTBOX, ENDS)
        return StreamingResponse(self._changes(bell, visit.request), media_type="text/event-stream")

    async def _changes(self, bell: Bell, request: Request) -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        clock = self.system.clock
        while True:
            rung = await bell.wait(clock, clock.now() + LIVE_FOR)
            with suppress(StoreDown):
                if await self._find(request) is None:
                    return
            yield "event: changed\ndata: 1\n\n" if rung else ": still here\n\n"
            # Many things happen at once; a page looks at them together.
            await asyncio.sleep(CALM_SECONDS)


def _fail(error: StoreDown) -> Page:
    async def fail(visit: Visit) -> Response:
        del visit
        raise error

    return fail


def _check_form(session: Session, form: Mapping[str, str]) -> None:
    if form.get("token") != session.token:
        raise BadInput("this form is too old or was not sent from here; load the page again")


@cache
def _files() -> Mapping[str, bytes]:
    """Read the files of the site's own looks, once, so that no request waits for a disk."""
    return {one.name: one.read_bytes() for one in _STATIC.iterdir() if one.is_file()}


async def serve_file(request: Request) -> Response:
    """Serve a file of the site's own looks."""
    name = request.path_params["name"]
    kind = name.rpartition(".")[2]
    body = _files().get(name)
    if body is None or kind not in TYPES:
        return Response(status_code=404)
    headers = {"Cache-Control": "public, max-age=3600"}
    return Response(body, media_type=TYPES[kind], headers=headers)


async def show_nothing(visit: Visit) -> Response:
    """Say that there is no such page."""
    raise NotFound(visit.words("problem.nowhere"))


def make_site(site: Site, pages: Iterable[Listed]) -> Router:
    """Make the site of an installation with some pages."""
    _files()
    routes = [
        Route("/static/{name}", serve_file),
        site.open_route("/login", site.log_in, ("GET", "POST")),
        site.open_route("/language", site.speak),
        site.route("/logout", site.log_out, ("POST",)),
        site.route("/changes", site.listen),
        *(site.route(path, page, methods) for path, page, methods in pages),
        site.route("/{rest:path}", show_nothing),
    ]
    return Router(routes=routes, redirect_slashes=False)
