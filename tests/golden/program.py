"""Run the program on a golden database: the only module here that imports parts of it."""

import io
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog
import typer
from starlette.routing import Route

from mimawari import log
from mimawari.app.cli import app
from mimawari.app.http.addresses import Hosts
from mimawari.app.http.answering import take_doors
from mimawari.app.http.api import make_app, make_internal_app
from mimawari.app.http.guesses import Guesses
from mimawari.app.ops import System, opened
from mimawari.kernel.rights import make_token
from mimawari.settings import load_settings
from mimawari.store.sql.rates import SqlRates
from mimawari.watches import INSTALLED
from mimawari.web.pages import PAGES
from mimawari.web.site import Site, make_site

ROOT = Path(__file__).parents[2]
"""Commands name files from here."""
MOMENT = "2026-02-14T14:05:30+00:00"
"""When all golden data are read; the dumps were made just before."""
KEY, INTERNAL_KEY = "golden-key-of-the-tests", "golden-internal-key-of-the-tests"
POD_TOKEN = make_token(INTERNAL_KEY.encode(), "stream-monitor-1")
"""The token of the pod that the requests to the internal API are sent as."""
SITE = "http://127.0.0.1:18085"
"""The address of the simulated sites in the dumps; no server is needed there."""
VARIABLES: Mapping[str, str] = {
    # So slow that the clock stands still.
    "MIMAWARI_TIME_SCALE": "1e-15",
    "MIMAWARI_TIME_ANCHOR": MOMENT,
    "MIMAWARI_API_KEYS": KEY,
    "MIMAWARI_API_RATE": "1000000",
    "MIMAWARI_HOST": "127.0.0.1",
    "MIMAWARI_PORT": "0",
    "INTERNAL_API_KEY": INTERNAL_KEY,
    "MIMAWARI_INTERNAL_HOST": "127.0.0.1",
    "MIMAWARI_INTERNAL_PORT": "0",
    "MIMAWARI_ALLOW_HOSTS": SITE.removeprefix("http://"),
    "MIMAWARI_MERCARI_URL": SITE,
    "MIMAWARI_MERCARI_API_URL": SITE,
    "MIMAWARI_RENTALS_URL": SITE,
    "MIMAWARI_GOOGLE_BOOKS_URL": SITE,
    "MIMAWARI_STREAMS_RESOLVER_URL": f"{SITE}/resolve",
    "WEBHOOK_SIGNING_KEY": "simulated-webhook-key",
    "MIMAWARI_BOOKS_KEY": "golden-books-key",
    # No server listens on this port, so that every reading gets the same error.
    "MIMAWARI_SMTP_HOST": "127.0.0.1",
    "MIMAWARI_SMTP_PORT": "9",
    "MIMAWARI_SMTP_SECURITY": "none",
    "MIMAWARI_MAIL_FROM": "books@example.org",
    "MIMAWARI_MAIL_TO": "you@example.org",
    "GOLDEN_NOTIFY_URL": "mailto:reference@example.org",
    "COLUMNS": "100",
    "TZ": "Asia/Tokyo",
    "LC_ALL": "C.UTF-8",
}
KEPT = ("PATH", "HOME", "TMPDIR", "VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH", "TERMINFO")
"""Variables of the caller's environment that the program may see."""


COMMAND = typer.main.get_command(app)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Doors:
    """The addresses of the program."""

    public: str
    internal: str


@contextmanager
def environment(folder: Path, database: str) -> Iterator[None]:
    """Replace the environment by the one of golden data, on a data folder and a database."""
    before = dict(os.environ)
    kept = {name: before[name] for name in KEPT if name in before}
    given = {"MIMAWARI_DATA": str(folder), "MIMAWARI_DATABASE_URL": database}
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    _become({**kept, **VARIABLES, **given})
    try:
        with chdir(ROOT):
            yield
    finally:
        _become(before)
        root.handlers[:] = handlers
        root.setLevel(level)
        structlog.reset_defaults()


def _become(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)
    time.tzset()


@asynccontextmanager
async def serving() -> AsyncIterator[Doors]:
    """Upgrade the database, and serve as `mimawari serve --role api` does."""
    log.configure("error")
    settings = load_settings()
    doors = take_doors(settings)
    assert doors.inside is not None
    inner = f"http://127.0.0.1:{doors.inside.getsockname()[1]}"
    async with opened(settings, INSTALLED) as system:
        apis = doors.answer(system)
        try:
            yield Doors(doors.address, inner)
        finally:
            for server, task in apis:
                server.should_exit = True
                await task


def run(words: list[str]) -> Ended:
    """Run a command to its end."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            COMMAND.main(words, prog_name="mimawari")
        except SystemExit as end:
            code = int(end.code or 0)
    return Ended(code, out.getvalue(), err.getvalue())


@dataclass(frozen=True, slots=True)
class Described:
    """Everything that the program serves by GET."""

    api: dict[str, Any]
    internal: dict[str, Any]
    """The OpenAPI documents of the public and the internal API."""
    pages: list[str]
    """The path templates of all pages and files of the site."""


async def describe() -> Described:
    """Return everything that the program serves by GET."""
    async with opened(load_settings(), INSTALLED) as system:
        return Described(
            make_app(system, (b"a",)).openapi(),
            make_internal_app(system, b"a").openapi(),
            [
                route.path
                for route in make_site(_site(system), PAGES).routes
                if isinstance(route, Route) and "GET" in (route.methods or ())
            ],
        )


def _site(system: System) -> Site:
    """Return what the pages stand on; nobody asks them for anything."""
    guesses = Guesses(SqlRates(system.store.database), system.clock)
    return Site(system, (b"a",), Hosts(system.settings.public_url), guesses)


def list_json_commands() -> list[str]:
    """List all commands that have an option --json."""
    return [*_walk(COMMAND, ())]


def _walk(command: Any, words: tuple[str, ...]) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, each in command.commands.items():
            yield from _walk(each, (*words, name))
    elif any("--json" in option.opts for option in command.params):
        yield " ".join(words)
