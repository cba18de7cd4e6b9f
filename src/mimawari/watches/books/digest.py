"""The digest of new books, as one mail of text and HTML; the same input gives the same bytes."""

import re
from dataclasses import dataclass
from datetime import date, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from hashlib import sha256
from pathlib import Path
from typing import Literal

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from mimawari.errors import BadInput
from mimawari.settings.mail import is_mail_address, is_unsubscribe
from mimawari.watches.books.wrapping import cut, one_run, strip_markup, wrap

Language = Literal["ja", "en"]
MOST_DESCRIPTION = 300
MOST_TITLE = 200
MOST_NAME = 100
AUTHORS_SHOWN = 3
PREVIEWED = 3
WIDEST_HEADER = 990
"""An address in a header that was folded or encoded would be none for those who look for it."""

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?")
_LINK = re.compile(r"https?://([^\s/?#@<>\"'\\]+(?:[/?#][^\s<>\"'\\]*)?)")
_MESSAGE_ID = re.compile(r"<[!#-;=?A-Z^-~]{1,120}@[0-9A-Za-z.-]{1,120}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """A book as it is told of; `published` is a year, a month or a day."""

    title: str
    subtitle: str | None = None
    authors: tuple[str, ...] = ()
    publisher: str | None = None
    published: str | None = None
    isbn13: str | None = None
    description: str | None = None
    thumbnail: str | None = None
    info_link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """The new books of one job."""

    name: str
    books: tuple[Book, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """What a digest tells, to whom and when; one unsubscribes by a mail address or an https URL."""

    sections: tuple[Section, ...]
    language: Language
    day: date
    sent_at: datetime
    message_id: str
    sender: str
    recipients: tuple[str, ...]
    unsubscribe: str

    def __post_init__(self) -> None:
        """Refuse what would break a header, or a mail without a book."""
        if not any(section.books for section in self.sections):
            raise BadInput("a digest without a book is not written; wait for one")
        if not self.recipients or not all(map(is_mail_address, (self.sender, *self.recipients))):
            raise BadInput("sender and recipients must be plain mail addresses; correct them")
        if not _MESSAGE_ID.fullmatch(self.message_id):
            raise BadInput("the Message-ID must be like <digest-42@example.org>")
        if not is_unsubscribe(self.unsubscribe):
            raise BadInput("unsubscribing goes by a mail address or an https URL; give one")
        if self.sent_at.utcoffset() is None:
            raise BadInput("the time of sending must have a time zone")

    @property
    def unsubscribe_url(self) -> str:
        """Where whoever wants no more of these goes."""
        if self.unsubscribe.startswith("https://"):
            return self.unsubscribe
        return f"mailto:{self.unsubscribe}?subject=unsubscribe"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Words:
    """How one language says it."""

    language: Language
    name: str
    subject: tuple[str, str]
    count: tuple[str, str]
    dates: tuple[str, str, str]
    comma: str
    others: str
    cover: str
    footer: str
    stop: str

    def counted(self, number: int) -> str:
        """Count books."""
        return self.count[number != 1].format(number)

    def dated(self, published: str | None) -> str:
        """Write a date as exactly as it is known."""
        found = _DATE.fullmatch(published or "")
        if found is None:
            return ""
        year, month, day = (int(part or 1) for part in found.groups())
        if not 1 <= month <= len(_MONTHS):
            return ""
        known = self.dates[bool(found[2]) + bool(found[3])]
        return known.format(year=year, month=month, day=day, named=_MONTHS[month - 1])

    def by(self, authors: tuple[str, ...]) -> str:
        """Name the authors, the first ones of many."""
        names = [cut(one_run(author), MOST_NAME) for author in authors]
        shown = self.comma.join(names[:AUTHORS_SHOWN])
        return shown + self.others if len(names) > AUTHORS_SHOWN else shown


_WORDS = {
    "ja": _Words(
        language="ja",
        name="新着図書",
        subject=("新着図書 {}冊 ({})", "新着図書 {}冊 ({})"),
        count=("{}冊", "{}冊"),
        dates=("{year}年", "{year}年{month}月", "{year}年{month}月{day}日"),
        comma="、",
        others=" ほか",
        cover="表紙: {}",
        footer="Mimawari が自動で送りました。書誌は Google Books によります。",
        stop="配信を止める",
    ),
    "en": _Words(
        language="en",
        name="New books",
        subject=("{} new book ({})", "{} new books ({})"),
        count=("{} book", "{} books"),
        dates=("{year}", "{named} {year}", "{named} {day}, {year}"),
        comma=", ",
        others=" et al.",
        cover="Cover: {}",
        footer="Mimawari sent this mail by itself. The details are from Google Books.",
        stop="Unsubscribe",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """A book as it is shown: every text on one line, every link by https."""

    title: str
    subtitle: str
    facts: tuple[str, ...]
    isbn: str
    description: str
    link: str | None
    thumbnail: str | None
    cover: str


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=select_autoescape(("html",)),
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_TEMPLATES.filters["wrapped"] = lambda text: "\n".join(wrap(text))


def write_digest(digest: Digest) -> EmailMessage:
    """Write the mail; sent from the name of what it is about, so that an inbox shows it."""
    words = _WORDS[digest.language]
    number = sum(len(section.books) for section in digest.sections)
    message = EmailMessage(policy=SMTP)
    message["Date"] = digest.sent_at
    message["From"] = Address(words.name, addr_spec=digest.sender)
    message["To"] = [Address(addr_spec=recipient) for recipient in digest.recipients]
    message["Subject"] = words.subject[number != 1].format(number, digest.day)
    message["Message-ID"] = digest.message_id
    message["Auto-Submitted"] = "auto-generated"
    message["List-Unsubscribe"] = f"<{digest.unsubscribe_url}>"
    if digest.unsubscribe_url.startswith("https://"):
        message["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
    shown = _shown(digest, words, words.counted(number))
    # In base64 no server on the way has a reason to touch a line.
    message.set_content(_TEMPLATES.get_template("digest.txt").render(shown), cte="base64")
    page = _TEMPLATES.get_template("digest.html").render(shown)
    message.add_alternative(page, subtype="html", cte="base64")
    # Base64 never holds its first two signs; one made by chance would be another each time.
    message.set_boundary(f"=_{sha256(digest.message_id.encode()).hexdigest()[:32]}")
    message.policy = message.policy.clone(max_line_length=WIDEST_HEADER)
    return message


def _shown(digest: Digest, words: _Words, count: str) -> dict[str, object]:
    sections = [
        {
            "name": cut(one_run(section.name), MOST_TITLE),
            "count": words.counted(len(section.books)),
            "books": [_entry(book, words) for book in section.books],
        }
        for section in digest.sections
        if section.books
    ]
    titles = [book.title for section in digest.sections for book in section.books]
    return {
        "words": words,
        "count": count,
        "day": words.dated(digest.day.isoformat()),
        "preview": " / ".join(cut(one_run(title), MOST_NAME) for title in titles[:PREVIEWED]),
        "sections": sections,
        "unsubscribe_url": digest.unsubscribe_url,
    }


def _entry(book: Book, words: _Words) -> _Entry:
    title = cut(one_run(book.title), MOST_TITLE)
    publisher = cut(one_run(book.publisher or ""), MOST_NAME)
    facts = (words.by(book.authors), publisher, words.dated(book.published))
    return _Entry(
        title=title,
        subtitle=cut(one_run(book.subtitle or ""), MOST_TITLE),
        facts=tuple(filter(None, facts)),
        isbn=one_run(book.isbn13 or ""),
        description=cut(strip_markup(book.description or ""), MOST_DESCRIPTION),
        link=_secure(book.info_link),
        thumbnail=_secure(book.thumbnail),
        cover=words.cover.format(cut(title, MOST_NAME)),
    )


def _secure(link: str | None) -> str | None:
    """Return an address of the web by https; none of anything else."""
    found = _LINK.fullmatch(link or "")
    return f"https://{found[1]}" if found and found[1].isprintable() else None
