"""Reads IPs from a JSON or CSV file: bad rows are told with their line, good ones kept."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from mimawari.edges import csv_export
from mimawari.errors import BadInput
from mimawari.kernel.ports import Tx
from mimawari.settings import Settings
from mimawari.text import clean, one_line
from mimawari.watches.hot import franchises
from mimawari.watches.hot.models import MOST_TAG_TEXT, MOST_TAGS, MOST_TEXT, Ip, NewIp
from mimawari.watches.hot.rules import HEAVIEST, LIGHTEST

MOST_ROWS = 10_000
MOST_BYTES = 5 * 1024 * 1024
FIELDS = ("name", "keyword", "name_en", "weight", "active", "tags")
FIGURES = frozenset(
    {
        *("id", "interval_seconds", "last_crawled_at", "baseline_at", "failures", "last_error"),
        *("pages_asked", "pages_read", "capped_on_sale", "capped_sold", "is_whole", "note"),
        *("created_at", "updated_at"),
    }
)
"""Columns that an exported file has beside; they are passed over."""

_DECODER = json.JSONDecoder()
_ENDS = frozenset(",]")
_KNOWN = ", ".join(FIELDS)
_LINE_END = re.compile(r"\r\n|\r|\n")
_GAP = re.compile(r"[ \t\r\n]*")
_LIST = re.compile(r'[ \t\r\n]*(\{[ \t\r\n]*"ips"[ \t\r\n]*:[ \t\r\n]*)?\[')
# A string that is never closed is one piece too, so that every text is read in one go.
_PIECE = re.compile(r'"(?:[^"\\]|\\.?)*+"?|[\[\]{},]', re.DOTALL)
_PLAIN_NUMBER = re.compile(r"[0-9]{0,20}\.?[0-9]{1,20}")
_WORDS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was left out: the line on which it begins, and what to do about it."""

    line: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What a file holds, and which fields each good row gives."""

    good: tuple[NewIp, ...]
    given: tuple[frozenset[str], ...]
    bad: tuple[BadRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What became of a file."""

    added: int
    updated: int
    bad: tuple[BadRow, ...]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row as its format gives it: any value, or what keeps it from being one."""

    line: int
    value: object = None
    problem: str = ""


def parse(text: str, form: str) -> Parsed:
    """Read IPs from text; BadInput is raised where it is nothing of that form at all."""
    if form not in _READERS:
        raise BadInput(f"{one_line(form, most=40)!r} is no format; write json or csv")
    # The first comparison keeps a huge text from being written out a second time.
    if len(text) > MOST_BYTES or len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise BadInput("the file is larger than 5 MiB; split it and import the parts")
    good: list[NewIp] = []
    given: list[frozenset[str]] = []
    bad: list[BadRow] = []
    lines: dict[str, int] = {}
    for count, row in enumerate(_READERS[form](text.removeprefix("\ufeff")), start=1):
        if count > MOST_ROWS:
            raise BadInput(f"the file has more than {MOST_ROWS:,} rows; split it into parts")
        try:
            new = _decide(row, lines)
        except BadInput as error:
            bad.append(BadRow(row.line, str(error)))
            continue
        lines[new.keyword] = row.line
        good.append(new)
        given.append(frozenset(row.value) if isinstance(row.value, dict) else frozenset())
    return Parsed(good=tuple(good), given=tuple(given), bad=tuple(bad))


def _decide(row: _Row, lines: Mapping[str, int]) -> NewIp:
    if row.problem:
        raise BadInput(row.problem)
    if not isinstance(row.value, dict):
        raise BadInput('this is no object; write each IP like {"name": "…", "keyword": "…"}')
    new = make_new(row.value)
    if new.keyword in lines:
        shown = one_line(new.keyword, most=60)
        raise BadInput(
            f"the keyword {shown!r} stands in line {lines[new.keyword]} already; keep one of them"
        )
    return new


def make_new(fields: Mapping[str, object]) -> NewIp:
    """Make an IP of what a person or a file says, or raise BadInput with what to mend."""
    unknown = [name for name in fields if name not in FIELDS]
    if unknown:
        shown = one_line(unknown[0], most=40)
        raise BadInput(f"there is no field {shown!r}; use only {_KNOWN}")
    name = _text(fields, "name")
    if not name:
        raise BadInput("the name is missing; give every IP a name")
    return NewIp(
        name=name,
        keyword=_text(fields, "keyword") or name,
        name_en=_text(fields, "name_en"),
        weight=_weight(fields.get("weight", 1.0)),
        active=_active(fields.get("active", True)),
        tags=_tags(fields.get("tags", ())),
    )


def _text(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name, "")
    if not isinstance(value, str):
        raise BadInput(f'{name} must be text; write it in quotation marks, like "…"')
    text = clean(value).strip()
    if len(text) > MOST_TEXT:
        raise BadInput(f"{name} has {len(text)} characters; shorten it to {MOST_TEXT} at the most")
    return text


def _weight(value: object) -> float:
    # What is not a number compares with nothing, and so is out of bounds.
    if (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and LIGHTEST <= value <= HEAVIEST
    ):
        return float(value)
    raise BadInput(f"weight must be a number from {LIGHTEST} to {HEAVIEST}; 1 is usual")


def _active(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput("active must be true or false")
    return value


def _tags(value: object) -> tuple[str, ...]:
    words = re.split("[;|]", value) if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise BadInput("tags must be a list of texts, or one text with ; or | between the tags")
    tags = tuple(dict.fromkeys(tag for word in words if (tag := clean(word).strip())))
    if len(tags) > MOST_TAGS or any(len(tag) > MOST_TAG_TEXT for tag in tags):
        raise BadInput(
            f"there may be {MOST_TAGS} tags of {MOST_TAG_TEXT} characters; shorten or leave out"
        )
    return tags


class _Lines:
    """Counts lines on the way through a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def at(self, place: int) -> int:
        """Tell the line of a place, which lies behind the last one asked for."""
        self._line += sum(1 for _ in _LINE_END.finditer(self._text, self._at, place))
        self._at = place
        return self._line


def _read_json(text: str) -> Iterator[_Row]:
    opening = _LIST.match(text)
    if opening is None:
        raise BadInput(
            'this is no JSON with IPs; write a list like [{"name": "…"}],'
            ' or {"ips": [{"name": "…"}]}'
        )
    lines, place = _Lines(text), _skip(text, opening.end())
    is_empty = text[place : place + 1] == "]"
    while place < len(text) and not is_empty:
        row, place = _read_element(text, place, lines)
        yield row
        if text[place : place + 1] != ",":
            break
        place = _skip(text, place + 1)
    if place == len(text):
        message = "the file ends before its list does; see that it is whole, and import it again"
        yield _Row(lines.at(place), problem=message)
    else:
        _check_end(text, place + 1, lines, closing="}" if opening[1] else "")


def _read_element(text: str, start: int, lines: _Lines) -> tuple[_Row, int]:
    """Read one element and tell where it ends: at a comma, a bracket, or with the text."""
    line = lines.at(start)
    if text[start] in _ENDS:
        return _Row(line, problem="there is a comma with nothing beside it; take it out"), start
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "too long or too deep"
        problem = f"this is no JSON ({reason}); mend it and import it again"
        return _Row(line, problem=problem), _find_end(text, start)
    end = _skip(text, end)
    if end < len(text) and text[end] not in _ENDS:
        problem = "there is no comma after this element; put one there"
        return _Row(line, problem=problem), _find_end(text, start)
    return _Row(line, value), end


def _skip(text: str, place: int) -> int:
    found = _GAP.match(text, place)
    return found.end() if found else place


def _find_end(text: str, start: int) -> int:
    """Find the comma or bracket that ends a broken element, as far as it can be told."""
    depth = 0
    for piece in _PIECE.finditer(text, start):
        mark = piece[0]
        if not depth and mark in _ENDS:
            return piece.start()
        depth += (mark in {"[", "{"}) - (mark in {"]", "}"} and depth > 0)
    return len(text)


def _check_end(text: str, place: int, lines: _Lines, *, closing: str) -> None:
    place = _skip(text, place)
    if closing and text[place : place + 1] == closing:
        place, closing = _skip(text, place + 1), ""
    if closing or place < len(text):
        raise BadInput(
            f"line {lines.at(place)}: the file goes on after its list, or ends too soon;"
            ' it must be a list or {"ips": [...]} and nothing else'
        )


def _read_csv(text: str) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(text), strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            if header is None:
                raise BadInput(f"line {line}: {_explain(str(error))}") from error
            yield _Row(line, problem=_explain(str(error)))
            continue
        if not any(map(str.strip, cells)):
            continue
        if header is None:
            header = _header(cells)
        else:
            yield _csv_row(line, header, cells)


def _explain(error: str) -> str:
    if "end of data" in error:
        return (
            "a quotation mark is opened here and never closed, so nothing after it could be read;"
            " close it and import again"
        )
    return f"this row cannot be read ({error}); close quotation marks, and double those in text"


def _separator(text: str) -> str:
    lines = io.StringIO(text, newline="")
    names = next((line for line in lines if line.strip().strip(",;\t ")), "")
    counts = {mark: len(_names(names.split(mark)) & set(FIELDS)) for mark in ",;\t"}
    best = max(counts, key=lambda mark: counts[mark])
    if not counts[best]:
        raise BadInput(
            f"this is no CSV with IPs; its first line must name the columns: {_KNOWN}"
            " (name is needed), with commas, semicolons or tabs between them"
        )
    return best


def _names(cells: Sequence[str]) -> set[str]:
    return {_column(cell) for cell in cells}


def _column(cell: str) -> str:
    return clean(cell).strip().strip('"').strip().casefold()


def _header(cells: Sequence[str]) -> list[str]:
    header = [_column(cell) for cell in cells]
    unknown = [name for name in header if name not in FIELDS and name not in FIGURES]
    if unknown:
        shown = one_line(unknown[0], most=40)
        raise BadInput(f"the first line names a column {shown!r}; use only {_KNOWN}")
    if len(set(header)) < len(header):
        raise BadInput("the first line names a column twice; keep one of them")
    if "name" not in header:
        raise BadInput("the first line names no column name; add it")
    return header


def _csv_row(line: int, header: Sequence[str], cells: Sequence[str]) -> _Row:
    if len(cells) > len(header):
        return _Row(
            line,
            problem=f"this row has {len(cells)} cells, the first line {len(header)};"
            " put text that holds a separator in quotation marks",
        )
    # An empty cell says nothing, as a field that is left out does.
    given = {
        name: text
        for name, cell in zip(header, cells, strict=False)
        if name in FIELDS and (text := _unquoted(cell.strip()))
    }
    return _Row(line, {name: _typed(name, text) for name, text in given.items()})


def _unquoted(text: str) -> str:
    """Take back the apostrophe that an export puts before what looks like a formula."""
    return text[1:] if text[:1] == "'" and text[1:2] in csv_export.FORMULA else text


def _typed(name: str, text: str) -> object:
    """Return what a cell means; what means nothing stays text, which is refused later on."""
    if name == "weight" and _PLAIN_NUMBER.fullmatch(text):
        return float(text)
    if name == "active":
        return _WORDS.get(text.casefold(), text)
    return text


_READERS: Mapping[str, Callable[[str], Iterator[_Row]]] = {"json": _read_json, "csv": _read_csv}


async def save(tx: Tx, parsed: Parsed, settings: Settings, now: datetime) -> Imported:
    """Keep the good rows: known keywords are described anew, the others added all at once."""
    watched = await franchises.find_by_keyword(tx, [new.keyword for new in parsed.good])
    added = [new for new in parsed.good if new.keyword not in watched]
    for new, given in zip(parsed.good, parsed.given, strict=True):
        ip = watched.get(new.keyword)
        if ip is not None:
            await franchises.change_ip(tx, ip.id, _joined(ip, new, given), settings, now)
    await franchises.add_ips(tx, added, settings, now)
    return Imported(added=len(added), updated=len(parsed.good) - len(added), bad=parsed.bad)


def _joined(ip: Ip, new: NewIp, given: frozenset[str]) -> NewIp:
    """Take what a row gives, and what is known where it gives nothing."""
    return NewIp(
        name=new.name,
        keyword=new.keyword,
        name_en=new.name_en if "name_en" in given else ip.name_en,
        weight=new.weight if "weight" in given else ip.weight,
        active=new.active if "active" in given else ip.active,
        tags=new.tags if "tags" in given else ip.tags,
    )
