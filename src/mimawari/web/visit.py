"""One visit to a page: who comes, in which language and zone, and how the page is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlencode
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from mimawari.edges.system import System
from mimawari.errors import BadInput
from mimawari.text import clean, one_line
from mimawari.web.nav import NAV
from mimawari.web.reasons import say_problem, say_reason
from mimawari.web.session import Session
from mimawari.web.words import LANGUAGES, NAMES, Words

MOST_FIELDS = 100
MOST_NUMBER = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """What a page is given."""

    system: System
    request: Request
    session: Session | None
    words: Words
    zone: ZoneInfo
    form: Mapping[str, str]
    """What was sent, if anything."""

    @property
    def path(self) -> str:
        """Where the visitor is."""
        return str(self.request.scope["path"])

    @property
    def world(self) -> str | None:
        """Where a demo's world is, which shows the mail and the webhooks that it was sent."""
        settings = self.system.settings
        address = settings.google_books_url
        is_near = address.startswith("http://127.0.0.1:")
        return address if settings.is_demo and is_near else None

    @property
    def back(self) -> str:
        """Where the visitor comes back to: here as it is, or to the watch whose form was sent."""
        if self.request.method == "POST":
            return "/" + self.path.split("/")[1]
        query = self.request.url.query
        return f"{self.path}?{query}" if query else self.path

    def text(self, name: str, default: str = "") -> str:
        """Return a parameter of the address as clean text."""
        return clean(self.request.query_params.get(name, default))[:200]

    def number(self, name: str, default: int, most: int = MOST_NUMBER) -> int:
        """Return a parameter of the address as a whole number; what is none is the default."""
        text = self.request.query_params.get(name, "")
        is_plain = text.isascii() and text.isdecimal() and len(text) < 12  # noqa: PLR2004 - bounds
        return min(int(text), most) if is_plain else default

    def choice(self, name: str, *allowed: str) -> str:
        """Return a parameter that is one of some words; anything else is the first of them."""
        given = self.text(name)
        return given if given in allowed else allowed[0]

    def link(self, **changed: Any) -> str:
        """Return the address of this page with other parameters; None takes one out."""
        query = dict(self.request.query_params)
        query |= {name: str(value) for name, value in changed.items() if value is not None}
        kept = {name: value for name, value in query.items() if changed.get(name, "") is not None}
        return f"?{urlencode(kept)}" if kept else self.path

    def page(self, template: str, status: int = 200, **facts: Any) -> Response:
        """Make a page."""
        return HTMLResponse(self.fragment(template, **facts), status)

    def fragment(self, template: str, **facts: Any) -> str:
        """Make a part of a page."""
        made = environment().get_template(template)
        return made.render(
            visit=self,
            t=self.words,
            now=self.system.clock.now(),
            languages={name: NAMES[name] for name in LANGUAGES},
            when=self.when,
            ago=self.ago,
            **facts,
        )

    def go(self, address: str) -> Response:
        """Lead to another page, as after something was sent."""
        return RedirectResponse(address, 303)

    def when(self, at: datetime | None, form: str = "%m-%d %H:%M:%S") -> str:
        """Write a time in the visitor's zone."""
        return "–" if at is None else at.astimezone(self.zone).strftime(form)

    def ago(self, at: datetime | None) -> str:
        """Say how long ago or how soon a time is."""
        if at is None:
            return "–"
        span = at - self.system.clock.now()
        key = "time.in" if span >= timedelta(0) else "time.ago"
        return self.words(key, span=self.span(abs(span)))

    def span(self, span: timedelta) -> str:
        """Write a duration with its two largest units."""
        return self.words.span(span)

    def reason(self, reason: str | None) -> str:
        """Say why something waits or has ended."""
        return say_reason(self.words, reason)

    def event(self, kind: str) -> str:
        """Say what kind of event something is."""
        if telling := self.system.watches.tellings.get(kind):
            return telling.name(self.words.language)
        name = kind.replace(".", "_")
        said = self.words.maybe("event", name)
        return kind if said == name else said

    def destination(self, destination: str) -> str:
        """Say what kind of receiver an event goes to; one that nobody knows as it is written."""
        scheme = destination.partition(":")[0]
        said = self.words.maybe("destination", scheme)
        return destination if said == scheme else said

    def problem(self, error: BadInput) -> str:
        """Say what is wrong with what the visitor gave."""
        return say_problem(self.words, error)


@cache
def environment() -> Environment:
    """Make what makes pages: everything escaped, and nothing undefined passed over."""
    made = Environment(
        loader=PackageLoader("mimawari.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["nav"] = NAV
    made.filters["yen"] = write_yen
    made.filters["count"] = lambda number: "–" if number is None else f"{number:,}"
    made.filters["line"] = lambda text, most=80: one_line(str(text or "–"), most=most)
    made.filters["web"] = safe_link
    return made


def write_yen(value: float | None) -> str:
    """Write yen without decimals."""
    return "–" if value is None else f"¥{value:,.0f}"


def safe_link(url: str | None) -> str:
    """Return an address that a browser may be led to, or nowhere."""
    return url if url and url.startswith(("https://", "http://")) else "#"


def parse_form(body: bytes) -> dict[str, str]:
    """Read what a form sends."""
    try:
        pairs = parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MOST_FIELDS
        )
    except ValueError as error:
        raise BadInput("the form has too many fields") from error
    return {name: clean(value) for name, value in pairs}


def mark_safe(html: str) -> Markup:
    """Say that markup of our own making is safe."""
    return Markup(html)  # noqa: S704 - made by `draw`, which escapes every text
