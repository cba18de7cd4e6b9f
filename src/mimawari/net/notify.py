"""Sends messages to any service that apprise knows, every connection through our own gate.

The library runs in a process of its own, so that its time is bounded whatever it does, and that
process can reach the gate and nothing else. Mail goes by the operator's own mail server instead.
"""

import asyncio
import json
import os
import re
import sys
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from mimawari.errors import BadInput, MimawariError, Transient
from mimawari.kernel.ports import Clock
from mimawari.log import STRUCK, hide_secrets, strike
from mimawari.net import mail
from mimawari.net.dial import Dialer
from mimawari.net.envelope import Envelope, relay_of, subject_of
from mimawari.net.gate import Bounds, Gate
from mimawari.net.guard import Address, Forbidden, Guard
from mimawari.net.references import find_kept, is_reference, unusable
from mimawari.settings import Settings
from mimawari.settings.mail import is_mail_address
from mimawari.text import clean, one_line

DEADLINE = timedelta(seconds=20)
MOST_URL = 2000
MOST_TOLD = 2000
MOST_BYTES = 2 * 1024 * 1024
MAIL = ("mailto", "mailtos")
LEAST_SECRET = 4
"""What is shorter is too common to be struck out wherever it stands."""
_SCHEME = re.compile(r"[a-z][a-z0-9]{1,31}")
_CHILD = Path(__file__).with_name("notify_child.py")
_PASSED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "LANG", "LC_ALL")
_ONLY_MAIL = (
    "mail goes by the server of MIMAWARI_SMTP_HOST; write mailto:you@example.org, with nothing else"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is told: a title, and lines of text."""

    id: str
    """The same at every attempt."""
    title: str
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and its answer, with secrets struck out."""

    method: str
    url: str
    sent: str
    status: int | None = None
    answer: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What really happened when a message was sent."""

    is_sent: bool
    error: str = ""
    took_ms: int = 0
    exchanges: tuple[Exchange, ...] = field(default=())


async def find_url(kept: str) -> str:
    """Return the address that is kept, or that a variable or a file holds, if it can be used."""
    if not is_reference(kept):
        check_url(kept)
        return kept
    url = await find_kept(kept, MOST_URL)
    try:
        check_url(url)
    except BadInput as error:
        raise unusable(kept) from error
    return url


def check_url(url: str) -> None:
    """Refuse an address that nothing could ever be sent to."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() in MAIL:
        recipients_of(url)
        return
    is_one = bool(_SCHEME.fullmatch(scheme.lower()) and re.fullmatch("//.+", rest))
    if not is_one or len(url) > MOST_URL or clean(url) != url or re.search(r"\s", url):
        raise BadInput(
            "this is no address of apprise; write one like discord://id/token, or env:NAME or"
            f" file:PATH for where one is, of at most {MOST_URL} letters",
            code="bad_notify_url",
        )


def recipients_of(url: str) -> tuple[str, ...]:
    """Read to whom a mailto address sends; anything but plain addresses is refused."""
    scheme, _, rest = url.partition(":")
    found = tuple(unquote(rest.removeprefix("//")).split(","))
    if scheme.lower() != "mailto" or not all(map(is_mail_address, found)):
        raise BadInput(_ONLY_MAIL, code="bad_notify_url")
    return found


class _Remembering(Guard):
    """A guard that remembers whom it turned away, so that it can be told."""

    refused: list[str]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Make the guard that the settings ask for, which has turned nobody away yet."""
        made = super().of(settings)
        made.refused = []
        return made

    async def addresses(self, host: str, port: int) -> tuple[Address, ...]:
        """Resolve a host once; raise what is in the way of reaching it."""
        try:
            return await super().addresses(host, port)
        except (Forbidden, Transient) as error:
            self.refused.append(str(error))
            raise


async def send(
    kept: str, message: Message, settings: Settings, clock: Clock, within: timedelta = DEADLINE
) -> Report:
    """Send a message, and tell what really happened; raises nothing."""
    began = clock.mark()
    try:
        url = await find_url(kept)
        is_mail = url.partition(":")[0].lower() in MAIL
        how = _send_mail if is_mail else _send_by_apprise
        report = await how(url, message, settings, within)
    except MimawariError as error:
        report = Report(is_sent=False, error=one_line(str(strike(str(error)))))
    took = clock.mark().elapsed_since(began)
    return Report(
        is_sent=report.is_sent,
        error=report.error,
        took_ms=round(took / timedelta(milliseconds=1)),
        exchanges=report.exchanges,
    )


async def _send_mail(url: str, message: Message, settings: Settings, within: timedelta) -> Report:
    del within
    relay = relay_of(settings)
    if relay is None:
        raise BadInput("no mail server is set; set MIMAWARI_SMTP_HOST and MIMAWARI_MAIL_FROM")
    recipients = recipients_of(url)
    made = EmailMessage()
    made["Subject"] = subject_of(message.title)
    made["From"] = settings.mail_from
    made["To"] = ", ".join(recipients)
    made["Message-ID"] = f"<notify-{message.id}@{settings.mail_from.rpartition('@')[2]}>"
    made.set_content(clean(message.body))
    envelope = Envelope(sender=settings.mail_from, recipients=recipients, message=made)
    sent = await mail.send(relay, envelope, _nothing)
    refused = "; ".join(f"not taken for {one.recipient}: {one.reason}" for one in sent.refused)
    shown = Exchange(
        method="MAIL",
        url=f"smtp://{relay.host}:{relay.port}",
        sent=f"Subject: {made['Subject']}",
        status=250,
        answer=one_line(sent.reply),
        error=refused,
    )
    return Report(is_sent=True, exchanges=(shown,))


async def _nothing() -> None:
    """Commit nothing before a mail's end: one that may have come is better than none."""


async def _send_by_apprise(
    url: str, message: Message, settings: Settings, within: timedelta
) -> Report:
    guard = _Remembering.of(settings)
    async with Gate(Dialer(guard), Bounds(tunnel_bytes=MOST_BYTES, dial_for=within)) as gate:
        port = int(gate.address.rpartition(":")[2])
        asked = {"url": url, "title": message.title, "body": message.body, "port": port}
        try:
            async with asyncio.timeout(within.total_seconds()):
                told = await _run_child(asked, gate.address)
        except TimeoutError:
            error = f"the receiver took longer than {within.total_seconds():g} s"
            return Report(is_sent=False, error=(guard.refused or [error])[0])
    return _make_report(url, told, guard.refused)


async def _run_child(asked: dict[str, Any], gate: str) -> dict[str, Any]:
    passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
    ways = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), gate)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_CHILD)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        # Nothing of ours goes along: no keys, no home with passwords in it.
        env={**passed, **ways, "HOME": "/nonexistent", "PATH": os.defpath},
    )
    try:
        written, _ = await process.communicate(json.dumps(asked).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    try:
        told: dict[str, Any] = json.loads(written)
    except ValueError:
        return {"is_known": True, "is_sent": False, "exchanges": [], "lines": [
            f"what sends ended with {process.returncode} and said nothing"
        ]}  # fmt: skip
    return told


def _make_exchange(one: dict[str, Any], hide: "_Hiding", refused: list[str]) -> Exchange:
    answer, status = one.get("answer", ""), one.get("status")
    # What our own gate has answered is no answer of the receiver's.
    is_ours = next((said for said in refused if said in answer), "")
    return Exchange(
        method=one["method"],
        url=hide_secrets(one["url"]),
        sent=hide(one["sent"]),
        status=None if is_ours else status,
        answer="" if is_ours else hide(answer),
        error=is_ours or hide(one.get("error", "")),
    )


def _make_report(url: str, told: dict[str, Any], refused: list[str]) -> Report:
    hide = _Hiding(url)
    exchanges = tuple(_make_exchange(one, hide, refused) for one in told["exchanges"])
    if told["is_sent"]:
        return Report(is_sent=True, exchanges=exchanges)
    said = [hide(line) for line in told["lines"]]
    if not told["is_known"]:
        said.insert(0, f"apprise knows no service at {hide_secrets(url)}; see docs/notify.md")
    errors = [one.error for one in exchanges if one.error]
    answers = [f"the receiver answered {one.status}" for one in exchanges if one.status]
    reason = next(iter([*refused, *errors, *answers[-1:], *said]), "apprise could not send it")
    return Report(is_sent=False, error=one_line(reason), exchanges=exchanges)


class _Hiding:
    """Strikes out whatever an address holds that only its owner may know."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            open_words = {parts.hostname or "", str(parts.port or ""), "overflow"}
        except ValueError:
            open_words = set()
        words = re.split(r"[/:@?&=#,]+", url.partition("://")[2])
        known = {word for one in words for word in (one, unquote(one))} - open_words
        self._secret = sorted((w for w in known if len(w) >= LEAST_SECRET), key=len, reverse=True)

    def __call__(self, text: str) -> str:
        """Return a text without them, bounded and safe to show."""
        for word in self._secret:
            text = text.replace(word, STRUCK)
        return clean(str(strike(text)))[:MOST_TOLD]


def write_report(report: Report) -> str:
    """Write a report as it is kept."""
    return json.dumps(asdict(report), ensure_ascii=False)


def read_report(text: str | None) -> Report | None:
    """Read a report that was kept."""
    if text is None:
        return None
    said = json.loads(text)
    exchanges = tuple(Exchange(**one) for one in said.pop("exchanges"))
    return Report(**said, exchanges=exchanges)
