"""What is no reply of Mercari's API is never taken for one."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import Gone, Invalid
from mimawari.sites.mercari import parse_item, parse_search, parse_shops_product
from mimawari.sites.mercari.models import following
from mimawari.sites.mercari.page import page_token
from tests.captured import FOLDER, captured

FIXTURES = FOLDER / "mercari"
NOT_REPLIES = [
    *(b"", b"null", b"5", b'"x"', b"[]", b"{}", b"<html></html>", b"\xff\xfe\x00", b"\x00" * 50),
    *(b'{"items": [NaN], "meta": {}}', b'{"items": [Infinity], "meta": {}}', b'{"items": [}'),
    *(
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"items": {}, "meta": {}}',
        b'{"items": [], "meta": []}',
    ),
    *(b'{"items": []}', b'{"meta": {"nextPageToken": ""}}', b'{"result": "OK", "data": []}'),
    *(b'{"result": "OK", "data": null}', b'{"code": 3, "message": "bad", "details": null}'),
    *(b'{"result": "error", "errors": null}', b'{"result": "error", "errors": [5, {"code": []}]}'),
    *(b'{"displayName": 5}', b'{"code": 1' + b"0" * 5000 + b"}", b'{"a": 1e999999}'),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@captured
def test_the_captured_answer_on_an_unknown_item_says_that_it_is_gone() -> None:
    body = (FIXTURES / "api" / "test_item_not_found_0.json").read_bytes()
    with pytest.raises(Gone, match="RecordNotFoundException"):
        parse_item(body)
    with pytest.raises(Gone):
        parse_shops_product(body)
    with pytest.raises(Invalid, match="RecordNotFoundException") as caught:
        parse_search(body)
    assert caught.value.page == body


@pytest.mark.parametrize("parse", [parse_search, parse_item, parse_shops_product])
@pytest.mark.parametrize("body", NOT_REPLIES, ids=range(len(NOT_REPLIES)))
def test_what_is_no_such_reply_is_not_understood_and_is_kept(
    parse: Callable[[bytes], object], body: bytes
) -> None:
    with pytest.raises(Invalid) as caught:
        parse(body)
    assert caught.value.page == body
    assert len(str(caught.value)) < 400


@settings(max_examples=150, deadline=None)
@given(body=st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_body_raises_anything_but_our_errors(body: bytes) -> None:
    for parse in (parse_search, parse_item, parse_shops_product):
        with pytest.raises((Invalid, Gone)):
            parse(body)


def test_an_error_is_told_in_few_words() -> None:
    body = json.dumps({"code": 3, "message": "x\n\x1b" * 1000}).encode()
    with pytest.raises(Invalid) as caught:
        parse_search(body)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("token", "after"),
    [("", "v1:1"), ("v1:1", "v1:2"), ("v1:99", "v1:100"), ("v2:1", None), ("v1:-1", None)],
)
def test_the_token_after_a_token_of_the_known_form_is_known(token: str, after: str | None) -> None:
    assert following(token) == after


def test_a_token_is_read_from_any_link_without_fear() -> None:
    assert page_token("?page_token=v1%3A2") == "v1:2"
    assert page_token("&".join(["?a=b"] * 100_000)) == ""
    assert page_token("/search?page_token=%ff%fe") == ""
