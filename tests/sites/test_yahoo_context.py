"""How the rentals site's embedded JSON is found, whatever stands around it and in it."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.sites.yahoo_realestate.context import find_context
from tests.sites.yahoo_pages import write_context

steady = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
START = "window.__SERVER_SIDE_CONTEXT__ = "


@pytest.mark.parametrize(
    "shared",
    [
        "{}",
        "null",
        "1",
        '"page: {}"',
        '{"a": "page: {\\"wrong\\": 1}, mode"}',
        "{a: 'page: {', b: \"}\"}",
        "{page: {wrong: 1}, b: [1, {page: 2}]}",
        '{"page": {"wrong": 1}}',
        '["}", "]", {"x": "\\\\"}]',
        "{a: '\\'', b: `page: {}`, c: undefined}",
        "function(a, b) { return {page: a}; }",
        '{"a": "<\\/script>"}',
    ],
)
def test_only_the_outer_page_is_found(shared: str) -> None:
    assert find_context(write_context({"right": 1}, shared)) == {"right": 1}


@pytest.mark.parametrize(
    "text",
    [
        'window.__SERVER_SIDE_CONTEXT__={page:{"right":1}};',
        'window.__SERVER_SIDE_CONTEXT__ \n=\n {\n page \n:\n {"right": 1}, mode: "pc"};',
        'window.__SERVER_SIDE_CONTEXT__ = {"common": {}, "page": {"right": 1}};',
        "window.__SERVER_SIDE_CONTEXT__ = {'page': {\"right\": 1}};",
        'var a = "__SERVER_SIDE_CONTEXT__"; window.__SERVER_SIDE_CONTEXT__ = {page: {"right": 1}};',
        START + "{common: {}, mode: 1}; " + START + '{page: {"right": 1}};',
    ],
)
def test_the_page_is_found_however_it_is_written(text: str) -> None:
    assert find_context(f"<script>{text}</script>") == {"right": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "__SERVER_SIDE_CONTEXT__",
        START,
        START + "{",
        START + "{}",
        START + "[]",
        START + "{common: {}, mode: 1};",
        START + "{common: {page: {}}};",
        START + "{page: }",
        START + "{page: undefined}",
        START + "{page: {bare: 1}}",
        START + "{page: [1]}",
        START + '{page: "text"}',
        START + '{page: {"a": 1',
        START + '{common: "without an end, page: {}}',
        START + '{common: {{{, page: {"a": 1}}',
        START + "{page: " + '{"a":' * 100_000,
        START + "{page: " + "[" * 100_000,
        START + "{common: " + "{" * 100_000 + ', page: {"a": 1}}',
    ],
)
def test_a_context_that_cannot_be_read_is_none(text: str) -> None:
    assert find_context(text) is None


@pytest.mark.parametrize(
    "filler",
    ['"' + '\\"' * 1_000_000, "\\'" * 1_000_000, "[" + "," * 1_000_000, "`\\'\"" * 500_000],
)
def test_a_page_that_means_to_be_slow_is_given_up(filler: str) -> None:
    assert find_context(START + "{common: " + filler) is None
    assert find_context((START + "{common: " + filler[:1000]) * 500) is None


def test_numbers_that_are_none_are_missing_and_the_rest_is_read() -> None:
    text = '{"a": NaN, "b": -Infinity, "c": 1' + "0" * 5000 + ', "d": 5, "e": 1e999}'
    page = find_context(f"{START}{{page: {text}}};")
    assert page == {"a": None, "b": None, "c": None, "d": 5, "e": float("inf")}


words = st.text(alphabet="page:{}[],\"'`\\/<> 物件\u2028", max_size=12)
values = words | st.lists(words, max_size=3) | st.dictionaries(words, words | st.none(), max_size=3)


@steady
@given(st.dictionaries(words, values, max_size=3), values)
def test_every_page_is_read_back(page: dict[str, object], shared: object) -> None:
    written = write_context(page, json.dumps(shared, ensure_ascii=False))
    assert find_context(f"<p>page: 1</p><script>{written}</script>") == page


@steady
@given(st.text(alphabet="{}[]()\"'`\\,: page1"))
def test_no_context_raises_anything(text: str) -> None:
    find_context(START + "{" + text)
    find_context(START + "{page: {" + text)
