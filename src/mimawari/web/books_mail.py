"""The page of the digests: the next ones as they will look, and what became of others."""

from dataclasses import dataclass, replace
from email.message import EmailMessage

from starlette.responses import HTMLResponse, Response

from mimawari.errors import NotFound
from mimawari.watches.books import mailing
from mimawari.watches.books.digest import Digest, write_digest
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, make_file

A_PAGE = 20
MOST_PREVIEWS = 3
_COLUMNS = ("id", "created_at", "books", "state", "attempts", "changed_at", "reason")
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'self'; sandbox"
)
"""For a mail's page: it looks as it is written, and can do and load nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A digest as it would be written now."""

    number: int
    recipients: str
    subject: str
    text: str


async def show(visit: Visit) -> Response:
    """Show the next digests, and how those before stand."""
    if visit.text("format") == "csv":
        return await _download(visit)
    offset = visit.number("offset", 0)
    async with visit.system.store.read() as reader:
        found = await mailing.list_mails(reader, A_PAGE, offset)
        total = await mailing.count_mails(reader)
        waiting = await mailing.count_waiting(reader, visit.system.settings)
    digests = await _list_digests(visit)
    return visit.page(
        "books/mail.html",
        mails=found,
        total=total,
        limit=A_PAGE,
        offset=offset,
        waiting=waiting,
        following=sum(len(part.books) for one in digests for part in one.sections),
        previews=[_preview(visit, *one) for one in enumerate(digests[:MOST_PREVIEWS])],
        left_out=max(0, len(digests) - MOST_PREVIEWS),
        why_not=mailing.why_not(visit.system.settings),
    )


async def _download(visit: Visit) -> Response:
    async with visit.system.store.read() as reader:
        found = await mailing.list_mails(reader, MOST_ROWS)
    rows = [
        [*(getattr(one, name) for name in _COLUMNS), ", ".join(one.recipients)] for one in found
    ]
    return make_file("mails", (*_COLUMNS, "recipients"), rows)


async def _list_digests(visit: Visit) -> list[Digest]:
    system = visit.system
    async with system.store.read() as reader:
        waiting = await mailing.list_waiting(reader, system.settings)
    # Nobody's browser is led to another site by a look at a page of ours.
    bare = [replace(one, book=replace(one.book, thumbnail=None)) for one in waiting]
    return mailing.preview_digests(bare, system.settings, system.clock.now())


def _preview(visit: Visit, number: int, digest: Digest) -> Preview:
    message = write_digest(digest)
    named = [one for one in digest.recipients if one != mailing.UNSAID]
    return Preview(
        number=number,
        recipients=", ".join(named) or visit.words("books.nobody"),
        subject=str(message["Subject"]),
        text=_body(message, "plain"),
    )


def _body(message: EmailMessage, kind: str) -> str:
    body = message.get_body((kind,))
    return str(body.get_content()) if body else ""


async def show_preview(visit: Visit) -> Response:
    """Show a digest as a mail program does, shut off from everything."""
    number = int(visit.request.path_params["number"])
    digests = await _list_digests(visit)
    if number >= len(digests):
        raise NotFound(visit.words("books.no_preview"))
    headers = {"Content-Security-Policy": POLICY, "X-Frame-Options": "SAMEORIGIN"}
    return HTMLResponse(_body(write_digest(digests[number]), "html"), headers=headers)


PAGES = (
    ("/books/mail", show, ("GET",)),
    ("/books/mail/preview/{number:int}", show_preview, ("GET",)),
)
