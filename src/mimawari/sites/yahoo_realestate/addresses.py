"""Which addresses of the site are asked for, and how they are written."""

import re
from urllib.parse import SplitResult, quote, urljoin, urlsplit, urlunsplit

from mimawari.errors import BadInput
from mimawari.text import one_line

SITE_URL = "https://realestate.yahoo.co.jp"
MOST_CHARACTERS = 2000

_ID = re.compile(r"_?[0-9a-fA-F]{44}")
_DETAIL = re.compile(r"/rent/detail/(_?[0-9a-fA-F]{44})/?")
_LINK = re.compile(r"/rent/detail/([^/?#]+)")
_LIST = re.compile(r"/rent/search/(?:[\w-]+/)*[\w-]*")
_PORTS = {"http": 80, "https": 443}
_PLAIN = re.compile(r"[!-\[\]-~]+")
_WIDE = re.compile(r"[^\x00-\x7f]+")


def is_property_id(text: str) -> bool:
    """Say whether this is how the site names a property: 44 hex digits, maybe after a `_`."""
    return _ID.fullmatch(text) is not None


def linked_id(link: str) -> str | None:
    """Return the id of the property that a link of the site's leads to; None if to none."""
    found = _LINK.search(link)
    return found[1] if found else None


def is_same_property(property_id: str, other_id: str | None) -> bool:
    """Say whether two ids are of one property, as each is given with and without its `_`."""
    return other_id is not None and property_id.lstrip("_") == other_id.lstrip("_")


def make_detail_url(url: str, property_id: str) -> str:
    """Return the address of a property on the site that another of its addresses belongs to."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.netloc}/rent/detail/{property_id}/"


def parse_list_url(url: str, site_url: str = SITE_URL) -> str:
    """Return a list's address as the site writes it, or refuse one that is none of its lists."""
    parts = _at_home(_split(url), _split(site_url))
    if parts is None or not _LIST.fullmatch(parts.path):
        like = urljoin(site_url, "/rent/search/03/13/13104/")
        raise BadInput(f"{_shown(url)} is no list of the site's; give one like {like}")
    path = parts.path if parts.path.endswith("/") else f"{parts.path}/"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def parse_detail_url(url: str, site_url: str = SITE_URL) -> tuple[str, str]:
    """Return a property's address as the site writes it, and its id, or refuse any other."""
    parts = _at_home(_split(url), _split(site_url))
    found = None if parts is None else _DETAIL.fullmatch(parts.path)
    if found is None:
        like = urljoin(site_url, "/rent/detail/ID/")
        raise BadInput(
            f"{_shown(url)} is no property of the site's; give one like {like},"
            " where ID is 44 hex digits, maybe after a _"
        )
    return make_detail_url(site_url, found[1]), found[1]


def join_list_url(url: str, link: str) -> str:
    """Return the address that a link on a list leads to, or refuse one that leads off the lists."""
    try:
        target = urljoin(url, link)
    except ValueError as error:
        raise BadInput(f"{_shown(link)} is no address") from error
    return parse_list_url(target, url)


def _at_home(parts: SplitResult, home: SplitResult) -> SplitResult | None:
    """Lead an address of the site's to where the site is set to be; None if it is not the site's.

    People copy addresses from the real site also where another stands in for it.
    """
    if _origin(parts) == _origin(home):
        return parts
    if _origin(parts) != _origin(_split(SITE_URL)):
        return None
    return parts._replace(scheme=home.scheme, netloc=home.netloc)


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]


def _split(url: str) -> SplitResult:
    """Take an address apart; what a browser and we could read differently is refused."""
    # A browser shows Japanese words in an address, and sends them quoted.
    plain = _WIDE.sub(lambda words: quote(words[0], errors="replace"), url[: MOST_CHARACTERS + 1])
    if len(plain) > MOST_CHARACTERS or not _PLAIN.fullmatch(plain):
        raise BadInput(f"{_shown(url)} is no address")
    try:
        parts = urlsplit(plain)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise BadInput(f"{_shown(url)} is no address") from error
    if not usable or parts.scheme not in _PORTS or "@" in parts.netloc:
        raise BadInput(f"{_shown(url)} is no address that begins with https://")
    return parts


def _shown(url: str) -> str:
    return repr(one_line(url, most=80))
