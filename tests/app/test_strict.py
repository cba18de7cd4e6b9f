"""Strict JSON: what every reader understands in the same way passes, and nothing else."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.app.http.strict_json import DEEPEST, LARGEST, check_json
from mimawari.errors import BadInput

steady = settings(deadline=None, derandomize=True)
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
NUMBER = st.integers(-LARGEST, LARGEST) | st.floats(allow_nan=False, allow_infinity=False)
VALUE: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


def sentence(body: bytes) -> str:
    """Return the sentence a body is refused with."""
    with pytest.raises(BadInput) as refused:
        check_json(body)
    assert refused.value.code == "bad_json"
    return str(refused.value)


@steady
@given(VALUE, st.booleans())
def test_every_honest_value_passes_and_is_read_as_meant(value: Any, ascii_only: bool) -> None:
    assert check_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value


@steady
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_and_nothing_else_happens(body: bytes) -> None:
    with suppress(BadInput):
        check_json(body)


@steady
@given(st.text('[]{}",:\\ 0123456789eE+-.NaItfnulrs', max_size=60))
def test_anything_that_looks_like_json_is_read_as_the_library_reads_it(text: str) -> None:
    try:
        value = check_json(text.encode())
    except BadInput:
        return
    assert value == json.loads(text)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_named(constant: str) -> None:
    assert constant in sentence(f'{{"a": [{constant}]}}'.encode())


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 400 + ".5"])
def test_a_fraction_beyond_counting_is_refused(number: str) -> None:
    assert "number" in sentence(number.encode())


@pytest.mark.parametrize("number", [LARGEST, -LARGEST, 0])
def test_the_largest_whole_number_passes(number: int) -> None:
    assert check_json(str(number).encode()) == number


@pytest.mark.parametrize("number", [LARGEST + 1, -LARGEST - 1, 10**30, -(10**30), 10**4000])
def test_a_whole_number_that_other_readers_round_is_refused(number: int) -> None:
    assert str(LARGEST) in sentence(str(number).encode())


def test_a_key_twice_is_refused_however_it_is_written() -> None:
    assert "twice" in sentence(b'{"a": 1, "a": 1}')
    assert "twice" in sentence(b'[{"b": {"a": 1, "\\u0061": 2}}]')
    assert check_json(b'[{"a": 1}, {"a": 1}]') == [{"a": 1}, {"a": 1}]


@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded(opened: str, closed: str) -> None:
    def nested(depth: int) -> bytes:
        return (opened * depth + "1" + closed * depth).encode()

    check_json(nested(DEEPEST))
    for depth in (DEEPEST + 1, 900, 100_000):
        assert str(DEEPEST) in sentence(nested(depth))
    assert str(DEEPEST) in sentence(opened.encode() * 100_000)


def test_brackets_in_text_are_not_depth() -> None:
    text = '[{"' * 1000 + '\\"'
    assert check_json(json.dumps([text]).encode()) == [text]


@pytest.mark.parametrize(
    "body",
    [
        b'"\\u0000"',
        b'["a\\u0000"]',
        b'{"\\u0000": 1}',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'{"a": {"\\udfff": 1}}',
    ],
)
def test_text_that_no_database_holds_is_refused(body: bytes) -> None:
    assert "surrogate" in sentence(body)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert check_json(b'"\\ud83e\\udd8a"') == "🦊"


@pytest.mark.parametrize("body", [b"\xff", b'"\xed\xa0\x80"', b'"\xc0\x80"', b'"\xf0\x9f"'])
def test_bytes_that_are_not_utf_8_are_refused(body: bytes) -> None:
    assert "UTF-8" in sentence(body)


@pytest.mark.parametrize("body", [b"", b" ", b"{", b"{} {}", b"[1,]", b"'a'", b"\xef\xbb\xbf{}"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    assert "not JSON" in sentence(body)


def test_a_raw_control_byte_in_text_is_refused() -> None:
    assert "not JSON" in sentence(b'"a\nb"')
