"""What a process that answers people and pods has: the API with its pages, and the inner API."""

import socket
import ssl
from dataclasses import dataclass

import structlog

from mimawari.app.http.addresses import Hosts
from mimawari.app.http.allowance import Allowance
from mimawari.app.http.api import make_app, make_internal_app
from mimawari.app.http.guesses import Guesses
from mimawari.app.http.keys import find_short, fingerprint, load_keys
from mimawari.app.http.listening import Api, listen, start
from mimawari.app.http.requests_in_hand import noting
from mimawari.app.http.tls import load_tls
from mimawari.app.ops import System
from mimawari.app.process.record import RunningRecord
from mimawari.settings import Settings
from mimawari.store.sql.rates import SqlRates
from mimawari.web.front import Front
from mimawari.web.pages import PAGES
from mimawari.web.site import Site, make_site

log = structlog.get_logger(component="serve")


def start_api(
    system: System,
    api_keys: tuple[bytes, ...],
    taken: socket.socket,
    tls: ssl.SSLContext | None = None,
    record: RunningRecord | None = None,
) -> Api:
    """Serve the API and the pages on a socket."""
    rates, clock, settings = SqlRates(system.store.database), system.clock, system.settings
    hosts = Hosts(settings.public_url)
    front = Front(
        make_app(system, api_keys),
        make_site(Site(system, api_keys, hosts, Guesses(rates, clock)), PAGES),
        Allowance(rates, clock, settings.api_rate),
        system.reporter,
        hosts,
    )
    return start(noting(front, record), taken, tls, proxies=settings.trusted_proxies)


@dataclass(frozen=True, slots=True)
class Doors:
    """The addresses that a process has taken before it opened anything, and who may come in."""

    keys: tuple[bytes, ...]
    taken: socket.socket
    internal_key: bytes
    inside: socket.socket | None
    tls: ssl.SSLContext | None = None

    @property
    def address(self) -> str:
        """Where people find us."""
        host, port = self.taken.getsockname()[:2]
        scheme = "https" if self.tls else "http"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    async def end_sessions(self, system: System) -> None:
        """End the sessions of keys that are no more."""
        await system.store.sessions.end_without(list(map(fingerprint, self.keys)))

    def answer(self, system: System, record: RunningRecord | None = None) -> list[Api]:
        """Answer at each door."""
        apis = [start_api(system, self.keys, self.taken, self.tls, record)]
        if self.inside is not None:
            inner = make_internal_app(system, self.internal_key)
            apis.append(start(noting(inner, record), self.inside))
        return apis


def take_doors(settings: Settings) -> Doors:
    """Take the addresses of the API, and of the inner API where there is a key to it."""
    keys = load_keys(settings)
    tls = load_tls(settings)
    short = find_short(settings, keys)
    taken = listen(settings.host, settings.port)
    internal_key = settings.internal_key.get_secret_value().encode()
    inside = None
    if internal_key:
        inside = listen(settings.internal_host, settings.internal_port, "MIMAWARI_INTERNAL_PORT")
    for words in short:
        log.warning("key is short", what="serve", result="served", reason=words)
    return Doors(keys, taken, internal_key, inside, tls)
