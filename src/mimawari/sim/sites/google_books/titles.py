"""Made-up books: their titles, authors, dates and numbers."""

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from html import escape
from string import ascii_letters, digits
from textwrap import wrap
from typing import Any
from unicodedata import normalize
from urllib.parse import quote
from zlib import crc32

from mimawari.sim.chance import Chance, is_lucky

TOPICS = (
    ("統計", "Statistics", "Mathematics"),
    ("機械学習", "Machine Learning", "Computers"),
    ("Python", "Python", "Computers"),
    ("Rust", "Rust", "Computers"),
    ("データ分析", "Data Analysis", "Computers"),
    ("コンサルティング", "Consulting", "Business & Economics"),
    ("会計", "Accounting", "Business & Economics"),
    ("経営戦略", "Strategy", "Business & Economics"),
    ("発酵", "Fermentation", "Cooking"),
    ("家庭料理", "Home Cooking", "Cooking"),
    ("盆栽", "Bonsai", "Gardening"),
    ("鉄道", "Railways", "Transportation"),
    ("天文", "Astronomy", "Science"),
    ("海藻", "Seaweed", "Science"),
    ("猫", "Cats", "Pets"),
    ("山歩き", "Hiking", "Sports & Recreation"),
    ("陶芸", "Pottery", "Crafts & Hobbies"),
    ("江戸", "Old Edo", "History"),
    ("詩", "Poems", "Poetry"),
    ("推理", "Mystery", "Fiction"),
)
_TITLES = {
    "ja": (
        *("はじめての{}", "図解 {}入門", "{}の教科書", "{}のしくみ", "{}と暮らす", "{}の七日間"),
        *("一年目からの{}", "よくわかる{}", "{}手帖", "{}ノート", "夜明けの{}", "{}をめぐる旅"),
    ),
    "en": (
        *("{} in Practice", "The Quiet Book of {}", "{} for the Curious", "Learning {}"),
        *("A Short Walk through {}", "{}, Step by Step", "The Lighthouse Guide to {}"),
        *("{} after Midnight", "Everyday {}", "The {} Almanac"),
    ),
}
_SUBTITLES = {
    "ja": ("現場で使える知恵", "基礎から応用まで", "小さな町の記録", "改訂版", "見回りの記"),
    "en": ("A Field Guide", "Notes from the Rounds", "Second Edition", "Stories and Recipes"),
}
_MAGAZINES = {"ja": "月刊{} {}年{}月号", "en": "{} Monthly {}-{:02d}"}
_FAMILY = {
    "ja": ("巡田", "灯野", "汐見", "瑞木", "白鷺", "鈴懸", "雲井", "藤代", "小径", "朝霧"),
    "en": ("Thornwick", "Ashgrove", "Larkmoor", "Pellworth", "Quillan", "Brackenridge"),
}
_GIVEN = {
    "ja": ("圭", "千尋", "遥", "直人", "美緒", "周", "薫", "理沙", "健太", "文"),
    "en": ("Ada", "Tobias", "Miriam", "Otis", "Wren", "Hollis", "Ivo", "Petra"),
}
_PUBLISHERS = {
    "ja": ("見回り書房", "灯台社", "巡礼出版", "汐見文庫", "三日月堂"),
    "en": ("Lantern House", "Rounds Press", "Tidewater & Sons", "Third Bell Books"),
}
_BLURBS = {
    "ja": "{}を一から学ぶための一冊。著者が長年の経験をもとに、図と例でていねいに解説する。",
    "en": "A friendly companion to {}, written for readers who like to look twice.",
}
COVERS = "/_books/content"
_LETTERS = ascii_letters + digits + "-_"
_GROUPS = {"ja": ("9784",), "en": ("9780", "9781", "9798")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """A book as the catalogue has it; what is not known of it is None or empty."""

    id: str
    number: int
    appeared_at: datetime
    language: str
    topic: str
    title: str
    subtitle: str | None
    authors: tuple[str, ...]
    publisher: str | None
    published_date: str | None
    categories: tuple[str, ...]
    isbn13: str
    identifiers: tuple[tuple[str, str], ...]
    page_count: int
    print_type: str
    is_described: bool
    has_cover: bool
    folded: tuple[str, str, str, str]
    """Title, authors, subjects and all of them, in the form in which words are looked for."""

    @property
    def description(self) -> str | None:
        """What the publisher says about it."""
        return _BLURBS[self.language].format(self.topic) if self.is_described else None


def make_book(chance: Chance, number: int, appeared_at: datetime, published_on: date) -> Book:
    """Make the book with this number; no two numbers share an ISBN."""
    language = "ja" if is_lucky(chance, 0.65) else "en"
    ja, en, category = chance.choice(TOPICS)
    topic = ja if language == "ja" else en
    is_magazine = is_lucky(chance, 0.06)
    title = _make_title(chance, language, topic, published_on if is_magazine else None)
    subtitle = _maybe(chance, 0.4, chance.choice(_SUBTITLES[language]))
    authors = () if is_lucky(chance, 0.08) else _make_authors(chance, language)
    categories = (category,) if is_lucky(chance, 0.8) else ()
    isbn13 = _make_isbn13(chance, language, number)
    return Book(
        id="".join(chance.choices(_LETTERS, k=12)),
        number=number,
        appeared_at=appeared_at,
        language=language,
        topic=topic,
        title=title,
        subtitle=subtitle,
        authors=authors,
        publisher=_maybe(chance, 0.85, chance.choice(_PUBLISHERS[language])),
        published_date=_make_date(chance, published_on),
        categories=categories,
        isbn13=isbn13,
        identifiers=() if is_magazine else _make_identifiers(chance, isbn13),
        page_count=chance.randint(48, 640),
        print_type="MAGAZINE" if is_magazine else "BOOK",
        is_described=is_lucky(chance, 0.75),
        has_cover=is_lucky(chance, 0.85),
        folded=_fold_fields(f"{title} {subtitle or ''}", " ".join(authors), " ".join(categories)),
    )


def publish_on(chance: Chance, appeared_at: datetime, *, is_new: bool) -> date:
    """Choose when a book came out: about when it appeared, or long before."""
    days = chance.randint(-30, 60) if is_new else chance.randint(30, 14_000)
    return (appeared_at - timedelta(days=days)).date()


def fold(text: str) -> str:
    """Bring text into the form in which words are looked for."""
    return normalize("NFKC", text).casefold()


def make_isbn10(isbn13: str) -> str | None:
    """Return the older number of the same book; those that begin with 979 have none."""
    if not isbn13.startswith("978"):
        return None
    body = isbn13[3:12]
    rest = -sum(int(digit) * weight for digit, weight in zip(body, range(10, 1, -1), strict=True))
    return body + "0123456789X"[rest % 11]


def make_volume(book: Book, words: str, place: int, host: str) -> dict[str, Any]:
    """Write a book the way the API does, as found by these words at this place."""
    etag = urlsafe_b64encode(crc32(book.title.encode()).to_bytes(8, "big")).decode().rstrip("=")
    access = {
        "country": "JP",
        "viewability": "NO_PAGES",
        "embeddable": False,
        "publicDomain": False,
        "textToSpeechPermission": "ALLOWED",
        "epub": {"isAvailable": False},
        "pdf": {"isAvailable": False},
        "webReaderLink": f"http://play.google.com/books/reader?id={book.id}&hl=&source=gbs_api",
        "accessViewStatus": "NONE",
        "quoteSharingAllowed": False,
    }
    return {
        "kind": "books#volume",
        "id": book.id,
        "etag": etag,
        "selfLink": f"https://www.googleapis.com/books/v1/volumes/{book.id}",
        "volumeInfo": _present(_describe(book, host) | _link(book, words, place)),
        "saleInfo": {"country": "JP", "saleability": "NOT_FOR_SALE", "isEbook": False},
        "accessInfo": access,
        **({"searchInfo": {"textSnippet": book.description}} if book.description else {}),
    }


def draw_cover(book: Book) -> str:
    """Draw a book's cover, as an SVG."""
    colour = f"hsl({crc32(book.id.encode()) % 360} 45% 40%)"
    rows = wrap(book.title, 8)[:4]
    lines = "".join(
        f'<text x="14" y="{52 + 20 * place}">{escape(row)}</text>' for place, row in enumerate(rows)
    )
    authors = escape(book.authors[0] if book.authors else "")
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 128 182" width="128" height="182">'
        f'<rect width="128" height="182" fill="{colour}"/>'
        '<path d="M8 26h112M8 140h112" stroke="#fff8"/>'
        f'<g fill="#fff" font-family="sans-serif" font-size="13">{lines}'
        f'<text x="14" y="162" font-size="10">{authors}</text></g></svg>'
    )


def _fold_fields(title: str, authors: str, subjects: str) -> tuple[str, str, str, str]:
    return fold(title), fold(authors), fold(subjects), fold(f"{title} {authors} {subjects}")


def _describe(book: Book, host: str) -> dict[str, Any]:
    cover = f"http://{host}{COVERS}?id={book.id}&printsec=frontcover&img=1"
    sizes = {"smallThumbnail": 5, "thumbnail": 1}
    return {
        "title": book.title,
        "subtitle": book.subtitle,
        "authors": list(book.authors),
        "publisher": book.publisher,
        "publishedDate": book.published_date,
        "description": book.description,
        "industryIdentifiers": [
            {"type": kind, "identifier": identifier} for kind, identifier in book.identifiers
        ],
        "readingModes": {"text": False, "image": False},
        "pageCount": book.page_count,
        "printType": book.print_type,
        "categories": list(book.categories),
        "maturityRating": "NOT_MATURE",
        "allowAnonLogging": False,
        "contentVersion": "preview-1.0.0",
        "panelizationSummary": {"containsEpubBubbles": False, "containsImageBubbles": False},
        "imageLinks": {name: f"{cover}&zoom={zoom}&source=gbs_api" for name, zoom in sizes.items()}
        if book.has_cover
        else None,
        "language": book.language,
    }


def _link(book: Book, words: str, place: int) -> dict[str, str]:
    shown, title = f"id={book.id}&dq={quote(words)}&hl=", quote(book.title.replace(" ", "_"))
    return {
        "previewLink": f"http://books.google.co.jp/books?{shown}&cd={place}&source=gbs_api",
        "infoLink": f"http://books.google.co.jp/books?{shown}&source=gbs_api",
        "canonicalVolumeLink": f"https://books.google.com/books/about/{title}.html?id={book.id}",
    }


def _present(fields: dict[str, Any]) -> dict[str, Any]:
    """Leave out what is not known, as the API does."""
    return {name: value for name, value in fields.items() if value not in (None, [])}


def _make_title(chance: Chance, language: str, topic: str, month: date | None) -> str:
    if month:
        return _MAGAZINES[language].format(topic, month.year, month.month)
    title = chance.choice(_TITLES[language]).format(topic)
    return f"{title} {chance.randint(2, 12)}" if is_lucky(chance, 0.3) else title


def _make_authors(chance: Chance, language: str) -> tuple[str, ...]:
    names = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        family, given = chance.choice(_FAMILY[language]), chance.choice(_GIVEN[language])
        names.append(f"{family}{given}" if language == "ja" else f"{given} {family}")
    return tuple(dict.fromkeys(names))


def _make_date(chance: Chance, on: date) -> str | None:
    whole = on.isoformat()
    return chance.choices((whole, whole[:7], whole[:4], None), (60, 20, 14, 6))[0]


def _make_isbn13(chance: Chance, language: str, number: int) -> str:
    # The factor has no divisor in common with 10 ** 8, so no two numbers give the same body.
    body = f"{chance.choice(_GROUPS[language])}{(number * 48_271 + 1_234_567) % 10**8:08d}"
    total = sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(body))
    return f"{body}{-total % 10}"


def _make_identifiers(chance: Chance, isbn13: str) -> tuple[tuple[str, str], ...]:
    """Choose what the catalogue knows: most often both numbers, at times one, another or none."""
    isbn10 = make_isbn10(isbn13)
    new = [("ISBN_13", isbn13)]
    old = [("ISBN_10", isbn10)] if isbn10 else new
    other = [("OTHER", f"UOM:{chance.randrange(10**13, 10**14)}")]
    both = [*new, *old] if isbn10 else new
    ways = (both, both[::-1], new, old, other, both[:0])
    return tuple(chance.choices(ways, (40, 30, 14, 6, 6, 4))[0])


def _maybe(chance: Chance, share: float, value: str) -> str | None:
    return value if is_lucky(chance, share) else None
