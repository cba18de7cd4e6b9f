"""HTML within bounds of size and depth, in any encoding."""

import codecs
import re
from collections.abc import Iterator
from itertools import accumulate

from selectolax.lexbor import LexborHTMLParser, SelectolaxError

from mimawari.errors import Invalid
from mimawari.net.page import MOST_BYTES

MOST_DEPTH = 500
MOST_TAGS = 250_000
SLICE = 64 * 1024

# Elements that hold nothing, or that the next of their kind ends, so they never nest by themselves.
_FLAT = (
    "area base br col embed hr img input link meta param source track wbr p li option optgroup"
    " td th tr tbody thead tfoot colgroup dt dd rb rt rp"
)
_TAG = re.compile(
    rb"<(/?)(?!(?:" + "|".join(_FLAT.split()).encode() + rb")[\s/>])[a-z]", re.IGNORECASE
)
_CHARSET = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([a-z0-9_-]{1,40})""", re.IGNORECASE
)
_ENCODINGS = frozenset(
    {
        "utf-8", "utf-16", "utf-16-le", "utf-16-be", "cp932", "euc_jp", "iso2022_jp", "cp1252",
        "iso8859-15", "gb18030", "gbk", "gb2312", "big5", "euc_kr", "cp949", "cp1251", "koi8-r",
    }
)  # fmt: skip
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def parse_html(body: bytes, charset: str | None = None) -> LexborHTMLParser:
    """Read a page of any encoding; one that is out of bounds is refused before it costs much."""
    if len(body) > MOST_BYTES:
        raise Invalid(f"the page is larger than {MOST_BYTES} bytes", page=body[:SLICE])
    _check_depth(body)
    name = charset_of(body, charset)
    # Most pages are UTF-8, and those need no second copy.
    text = body if name == "utf-8" else body.decode(name, "replace").encode()
    try:
        return LexborHTMLParser(text)
    except SelectolaxError as error:
        raise Invalid("the page is no HTML", page=body) from error


def charset_of(body: bytes, said: str | None = None) -> str:
    """Tell a page's encoding: by its first bytes, its header, itself, or UTF-8."""
    for mark, name in _BOMS:
        if body.startswith(mark):
            return name
    found = _CHARSET.search(body[:2048])
    itself = found.group(1).decode() if found else None
    for claim in (said, itself):
        if claim and (known := _known(claim)):
            return known
    return "utf-8"


def _known(name: str) -> str | None:
    try:
        known = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    # What is called so is written as its larger sister, as browsers know.
    known = {"shift_jis": "cp932", "iso8859-1": "cp1252", "ascii": "utf-8"}.get(known, known)
    return known if known in _ENCODINGS else None


def _check_depth(body: bytes) -> None:
    """Refuse what would nest too deep: the parser's work grows with the square of it."""
    depth = tags = 0
    for part in _slices(body):
        tags += part.count(b"<")
        steps = [-1 if closes else 1 for closes in _TAG.findall(part)]
        if steps:
            levels = list(accumulate(steps, initial=depth))
            if max(levels) > MOST_DEPTH:
                raise Invalid(f"the page nests deeper than {MOST_DEPTH}", page=body[:SLICE])
            # An end without a beginning ends nothing.
            depth = max(levels[-1], 0)
        if tags > MOST_TAGS:
            raise Invalid(f"the page has more than {MOST_TAGS} tags", page=body[:SLICE])


def _slices(body: bytes) -> Iterator[bytes]:
    """Cut a page before tags, so that no step holds up other threads for long."""
    start = 0
    while start < len(body):
        end = start + SLICE
        if end < len(body):
            cut = body.rfind(b"<", start + 1, end)
            end = cut if cut > start else end
        yield body[start:end]
        start = end
