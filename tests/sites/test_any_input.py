"""Whatever comes from outside, every parser returns bounded values or raises one of our errors."""

import ast
import dataclasses
import inspect
import json
import math
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import mimawari.media
import mimawari.net
import mimawari.sites
from mimawari.errors import MimawariError
from mimawari.net.page import Page

LARGEST = 2**63
NAMES = ("parse_", "read_", "judge")
PACKAGES = (mimawari.sites, mimawari.media, mimawari.net)
NOT_FROM_OUTSIDE = {
    # They read what this program wrote or what the system holds, not what a site sent.
    "mimawari.net.notify.read_report",
    "mimawari.net.references.read_regular",
}
INNER = {
    # Parts of a parser of a whole page, which takes their errors or gives them what it made.
    "mimawari.sites.mercari.replies.parse_status",
    "mimawari.sites.yahoo_realestate.labels.read_stations",
    "mimawari.sites.yahoo_realestate.shown.read_shown",
    "mimawari.sites.youtube.heard.parse_heard",
}
NUMBERS = (
    "9" * 400, "9" * 5000, "-1", "1e999", "-1e999", "0.5", "NaN", "Infinity", "1_0", "\uff11\uff12",
    str(2**31), str(2**53), str(2**63), str(2**64), "0", "00", "1" * 19,
)  # fmt: skip
PIECES = (
    *("#EXTM3U\n", "#EXTINF:", ",\nseg.ts\n", "#EXTINF:4,\nseg.ts\n", "#EXT-X-BYTERANGE:", "@"),
    *("#EXT-X-MEDIA-SEQUENCE:", "#EXT-X-TARGETDURATION:", "#EXT-X-SKIP:SKIPPED-SEGMENTS="),
    *("#EXT-X-PROGRAM-DATE-TIME:", "#EXT-X-STREAM-INF:BANDWIDTH=", ",RESOLUTION=", "x", "\na\n"),
    *("万円", "円", "ヶ月", "m²", "歩", "分", "階", "年", "月", "/", ":", "?", "&", "=", "-", " "),
    *("https://", "http://[", "[", "]", "\0", "\ud800", "é", "<", ">", '"', "'", "{", "}", "\n"),
)


def parsers() -> Iterator[Callable[..., Any]]:
    """Find every function that reads what others wrote."""
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("notify_child"):
                continue
            module = import_module(found.name)
            for name, one in vars(module).items():
                is_ours = inspect.isfunction(one) and one.__module__ == found.name
                if is_ours and name.startswith(NAMES) and not inspect.iscoroutinefunction(one):
                    yield one


def name_of(parser: Callable[..., Any]) -> str:
    return f"{parser.__module__}.{parser.__qualname__}"


@cache
def words_of(module: str) -> tuple[str, ...]:
    """List the texts that a module itself speaks of: keys, labels, tags."""
    source = inspect.getsource(import_module(module))
    constants = [
        node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)
    ]
    return tuple({one for one in constants if isinstance(one, str) and 0 < len(one) < 40})


def texts(words: tuple[str, ...]) -> st.SearchStrategy[str]:
    pieces = st.sampled_from((*NUMBERS, *PIECES, *words))
    joined = st.lists(pieces, max_size=12).map("".join)
    # Of a playlist nothing is read unless it begins like one.
    listed = joined.map(lambda text: f"#EXTM3U\n#EXTINF:4,\nseg.ts\n{text}")
    return st.one_of(st.text(max_size=50), joined, listed)


def documents(words: tuple[str, ...]) -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), texts(words)
    )
    keys = st.sampled_from(words) if words else st.text(max_size=5)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=8)
        ),
        max_leaves=15,
    )


def bodies(words: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    written = documents(words).map(lambda value: json.dumps(value).encode())
    plain = texts(words).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return st.one_of(st.binary(max_size=200), written, plain)


def pages(words: tuple[str, ...]) -> st.SearchStrategy[Page]:
    names = st.sampled_from(["retry-after", "content-type", "cf-mitigated", "location"])
    return st.builds(
        Page,
        url=st.just("https://site.example/page"),
        status=st.integers(100, 999),
        headers=st.dictionaries(names, texts(words), max_size=3),
        body=bodies(words),
        fetched_at=st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    )


def arguments(parser: Callable[..., Any]) -> st.SearchStrategy[dict[str, Any]] | None:
    """Draw arguments by their types; None if the parser takes what only our own code makes."""
    words = words_of(parser.__module__)
    known: dict[Any, st.SearchStrategy[Any]] = {
        bytes: bodies(words),
        str: texts(words),
        str | bytes: st.one_of(texts(words), bodies(words)),
        str | None: st.one_of(st.none(), texts(words)),
        int | None: st.one_of(st.none(), st.integers(0, 10**9)),
        object: documents(words),
        Any: documents(words),
        Mapping[str, Any]: st.dictionaries(
            st.sampled_from(words or ("a",)), documents(words), max_size=8
        ),
        Page: pages(words),
        datetime: st.just(datetime(2026, 1, 1, tzinfo=UTC)),
    }
    hints = get_type_hints(parser)
    wanted = {name: hints[name] for name in inspect.signature(parser).parameters}
    if not all(any(hint == one for one in known) for hint in wanted.values()):
        return None
    return st.fixed_dictionaries({name: known[hint] for name, hint in wanted.items()})


def check_bounded(value: Any) -> None:
    """Fail if a number is larger than a database holds, or none at all."""
    if isinstance(value, int):
        assert abs(value) < LARGEST
    elif isinstance(value, float):
        assert math.isfinite(value)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for one in dataclasses.fields(value):
            check_bounded(getattr(value, one.name))
    elif isinstance(value, Mapping):
        for inner in value.values():
            check_bounded(inner)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            check_bounded(inner)


CHECKED = [one for one in parsers() if name_of(one) not in NOT_FROM_OUTSIDE | INNER]
DRAWN = [one for one in CHECKED if arguments(one) is not None]


@pytest.mark.parametrize("parser", DRAWN, ids=name_of)
def test_any_input_gives_a_bounded_value_or_an_error_of_ours(parser: Callable[..., Any]) -> None:
    drawn = arguments(parser)
    assert drawn is not None

    @settings(
        max_examples=40, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(drawn)
    def check(given_values: dict[str, Any]) -> None:
        try:
            found = parser(**given_values)
        except MimawariError:
            return
        check_bounded(found)

    check()


def test_only_these_parsers_take_what_cannot_be_drawn() -> None:
    left = {name_of(one) for one in CHECKED} - {name_of(one) for one in DRAWN}
    assert left == set()
