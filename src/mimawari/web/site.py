"""The site: its routes, who may see them, and the live events that pages listen to."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, Router

from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound, StoreDown
from mimawari.kernel.signal import ENDS, JOBS, OUTBOX, SCHEDULE
from mimawari.kernel.signals import Bell
from mimawari.text import clean
from mimawari.web.session import COOKIE, KEPT_FOR, Session, Sessions, use_once
from mimawari.web.visit import Visit, parse_form
from mimawari.web.words import LANGUAGES, Words, choose_language

Page = Callable[[Visit], Awaitable[Response]]
Listed = tuple[str, Page, tuple[str, ...]]
"""Where a page is, what makes it, and how it is asked for."""
_STATIC = Path(__file__).parent / "static"
TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
LIVE_FOR = timedelta(seconds=15)
CALM_SECONDS = 1.0
YEAR_SECONDS = 365 * 86400


class Site:
    """All pages of one installation."""

    def __init__(self, system: System, keys: tuple[bytes, ...]) -> None:
        self.system = system
        self.sessions = Sessions(keys, system.clock)

    def route(self, path: str, page: Page, methods: tuple[str, ...] = ("GET",)) -> Route:
        """Make a route to a page that only those see who are logged in."""

        async def answer(request: Request) -> Response:
            session = self.sessions.find(request.cookies.get(COOKIE))
            if session is None:
                return Response(status_code=303, headers={"Location": "/login"})
            return await self._answer(request, session, page)

        return Route(path, answer, methods=list(methods))

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
        if once is not None and await use_once(self.system.store.cache, once):
            return self._enter(visit, 0)
        if visit.request.method == "POST":
            which = self.sessions.matches(visit.form.get("key", "").strip())
            if which is not None:
                return self._enter(visit, which)
            return visit.page("login.html", 401, problem=visit.words("login.wrong"))
        problem = visit.words("login.used") if once is not None else None
        return visit.page("login.html", problem=problem)

    def _enter(self, visit: Visit, which: int) -> Response:
        answer = visit.go("/")
        answer.set_cookie(
            COOKIE,
            self.sessions.make(which),
            max_age=int(KEPT_FOR.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=visit.request.url.scheme == "https",
        )
        return answer

    async def log_out(self, visit: Visit) -> Response:
        """Forget who is here."""
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
        del visit
        # It rings for all that happens from when the answer has begun.
        bell = self.system.store.signal.bell(JOBS, SCHEDULE, OUTBOX, ENDS)
        return StreamingResponse(self._changes(bell), media_type="text/event-stream")

    async def _changes(self, bell: Bell) -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        clock = self.system.clock
        while True:
            rung = await bell.wait(clock, clock.now() + LIVE_FOR)
            yield "event: changed\ndata: 1\n\n" if rung else ": still here\n\n"
            # Many things happen at once; a page looks at them together.
            await asyncio.sleep(CALM_SECONDS)


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


def make_site(system: System, keys: tuple[bytes, ...], pages: Iterable[Listed]) -> Router:
    """Make the site of an installation with some pages."""
    site = Site(system, keys)
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
