"""What a property's page shows of the property itself, and not of others below it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from unicodedata import normalize

from selectolax.lexbor import LexborHTMLParser, LexborNode

from mimawari.sites.yahoo_realestate.addresses import is_same_property, linked_id
from mimawari.sites.yahoo_realestate.rows import text_of

MOST_CLIMBED = 40
MOST_NODES = 500

_HEADING = "h1.DetailHeadingLarge__title"
_RENT = ".DetailSummary__price__rent"
_ACCESS = "li.DetailSummaryTable__access"
_IMAGES = '[class*="Detail"] img'
_TITLES = ('meta[property="og:title"]', 'meta[name="twitter:title"]')
_PICTURES = ('meta[property="og:image"]', 'meta[name="twitter:image"]')
_OTHERS = re.compile(r"recommend|similar|related|history", re.IGNORECASE)
_OTHERS_SAID = re.compile(r"見た人|似た物件|近い物件|こんな物件|最近見た|おすすめの?(?:賃貸|物件)")


@dataclass(frozen=True, slots=True)
class Shown:
    """The words of a page: what stands under which name, and what needs none."""

    titles: tuple[str, ...]
    named: dict[str, str]
    stations: tuple[str, ...]
    images: tuple[str, ...]


def read_shown(tree: LexborHTMLParser, property_id: str) -> Shown:
    """Read a property's page, leaving out every block that is about another property."""
    block = _MainBlock(tree, property_id)
    heading = tree.css_first(_HEADING) or tree.css_first("h1")
    titles = [*_contents(tree, _TITLES), text_of(tree.css_first("title")), text_of(heading)]
    pictures = [*_contents(tree, _PICTURES), *map(_source, block.find_all(_IMAGES))]
    return Shown(
        titles=tuple(filter(None, titles)),
        named=_named(block),
        stations=tuple(filter(None, map(text_of, block.find_all(_ACCESS)))),
        images=tuple(filter(None, pictures)),
    )


class _MainBlock:
    """The part of a page that is about its own property, whatever the others are dressed in."""

    def __init__(self, tree: LexborHTMLParser, property_id: str) -> None:
        self._tree = tree
        self._property_id = property_id
        # Without its heading there is no telling whose block is whose, and none is ours.
        heading = tree.css_first(_HEADING)
        self._is_ours = {node.mem_id: True for node in _climb(heading)} if heading else {}

    def find_all(self, selector: str) -> Iterator[LexborNode]:
        """Yield the nodes of the block that match, in their order."""
        return (node for node in self._tree.css(selector)[:MOST_NODES] if self._holds(node))

    def _holds(self, node: LexborNode) -> bool:
        """Climb to what also holds our heading; a block of another property is met before it."""
        path, verdict = [], False
        for above in islice(_climb(node), MOST_CLIMBED):
            known = self._is_ours.get(above.mem_id)
            path.append(above.mem_id)
            if known is not None or self._is_of_others(above):
                verdict = bool(known)
                break
        self._is_ours.update(dict.fromkeys(path, verdict))
        return verdict

    def _is_of_others(self, node: LexborNode) -> bool:
        if node.tag in {"aside", "footer", "nav"}:
            return True
        if _OTHERS.search(node.attributes.get("class") or ""):
            return True
        if any(_OTHERS_SAID.search(text_of(title) or "") for title in node.css("h2, h3")):
            return True
        links = (link.attributes.get("href") or "" for link in node.css('a[href*="/rent/detail/"]'))
        return not all(is_same_property(self._property_id, linked_id(link)) for link in links)


def _climb(node: LexborNode) -> Iterator[LexborNode]:
    above: LexborNode | None = node
    while above is not None and above.is_element_node:
        yield above
        above = above.parent


def _named(block: _MainBlock) -> dict[str, str]:
    """Return what stands under which name; a table that says otherwise is of another property."""
    named: dict[str, str] = {}
    for table in block.find_all("table.DetailSummaryTable"):
        rows = dict(_pairs(table, "th", "td"))
        if any(named.get(name, text) != text for name, text in rows.items()):
            break
        named |= rows
    if rent := next(filter(None, map(text_of, block.find_all(_RENT))), None):
        named["賃料"] = rent
    for summary in block.find_all(".DetailSummary dl"):
        for name, text in _pairs(summary, "dt", "dd"):
            named.setdefault(name, text)
    return named


def _pairs(node: LexborNode, name_tag: str, text_tag: str) -> Iterator[tuple[str, str]]:
    """Yield the names and texts of a node; 敷金/礼金 with 1ヶ月/なし are two of each."""
    name = ""
    for cell in node.css(f"{name_tag}, {text_tag}"):
        if cell.tag == name_tag:
            name = normalize("NFKC", "".join((text_of(cell) or "").split())).rstrip(":")
            continue
        text = text_of(cell)
        for link in cell.css(".DetailSummaryTable__textLink"):
            text = text.replace(text_of(link) or "", "") if text else None
        if name and text:
            names, texts = name.split("/"), text.split("/")
            whole = len(names) != len(texts)
            yield from ((name, text),) if whole else zip(names, map(str.strip, texts), strict=True)
        name = ""


def _contents(tree: LexborHTMLParser, selectors: tuple[str, ...]) -> Iterator[str | None]:
    return (
        node.attributes.get("content") for selector in selectors for node in tree.css(selector)[:1]
    )


def _source(node: LexborNode) -> str | None:
    return node.attributes.get("data-src") or node.attributes.get("src")
