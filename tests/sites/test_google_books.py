"""What is read from Google Books, captured and made up, and how its refusals are told apart."""

import json
import pickle
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.errors import Invalid
from mimawari.sites.google_books import (
    Volume,
    VolumesPage,
    parse_isbn13,
    parse_volumes,
)
from tests.captured import FOLDER, captured
from tests.sites.books_replies import complain, make_item, write_volumes

FIXTURES = FOLDER / "google_books"
steady = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=200
)


def read_one(**changes: Any) -> Volume:
    page = parse_volumes(write_volumes(make_item(**changes)))
    assert page.refused == ()
    return page.volumes[0]


@captured
@pytest.mark.parametrize(
    "path", sorted(FIXTURES.glob("volumes*.json")), ids=lambda path: str(path.name)
)
def test_captured_replies_are_read_whole(path: Path) -> None:
    body = path.read_bytes()
    items = json.loads(body)["items"]
    page = parse_volumes(body)
    assert page.refused == ()
    assert page.total_items == json.loads(body)["totalItems"]
    assert [volume.id for volume in page.volumes] == [item["id"] for item in items]
    for volume, item in zip(page.volumes, items, strict=True):
        said = item["volumeInfo"]
        assert volume.title == said["title"]
        assert volume.subtitle == said.get("subtitle")
        assert volume.authors == tuple(said.get("authors", ()))
        assert volume.publisher == said.get("publisher")
        assert volume.published == said.get("publishedDate")
        assert volume.language == said.get("language")
        assert volume.categories == tuple(said.get("categories", ()))
        assert volume.page_count == said.get("pageCount")
        assert volume.info_link == said["infoLink"]
        numbers = {one["type"]: one["identifier"] for one in said.get("industryIdentifiers", ())}
        assert volume.isbn13 == parse_isbn13(numbers.get("ISBN_13", numbers.get("ISBN_10", "")))
        assert volume.thumbnail is not None
        assert volume.thumbnail.startswith("https://books.google.com/")


@captured
def test_the_captured_empty_reply_is_empty() -> None:
    body = (FIXTURES / "empty_no_items_key.json").read_bytes()
    assert parse_volumes(body) == VolumesPage(total_items=0, volumes=(), refused=())


def test_a_volume_is_read_in_full() -> None:
    assert read_one() == Volume(
        id="GjASzgEACAAJ",
        title="宇宙の話をしよう",
        subtitle="地球の外へ",
        authors=("小野雅裕", "利根川初美"),
        publisher="SBクリエイティブ",
        published="2020-11-06",
        isbn13="9784815602666",
        language="ja",
        categories=("Juvenile Nonfiction",),
        description="NASAの技術者と娘による\n宇宙探査のストーリー。",
        page_count=239,
        thumbnail="https://books.google.com/books/content?id=GjASzgEACAAJ&zoom=1",
        info_link="http://books.google.co.jp/books?id=GjASzgEACAAJ&source=gbs_api",
    )


def test_a_volume_needs_no_more_than_an_id_and_a_title() -> None:
    item = {"id": "x", "volumeInfo": {"title": "題"}}
    volume = parse_volumes(write_volumes(item)).volumes[0]
    assert (volume.id, volume.title, volume.authors, volume.isbn13) == ("x", "題", (), None)


@pytest.mark.parametrize(
    ("text", "published"),
    [
        ("2020", "2020"),
        ("2020-11", "2020-11"),
        ("2020-11-06", "2020-11-06"),
        ("2020-02-29", "2020-02-29"),
        ("2021-02-29", None),
        ("2020-13", None),
        ("2020-00", None),
        ("2020-11-31", None),
        ("0000", None),
        ("20", None),
        ("2020*", None),
        ("201?", None),
        ("2020-1-1", None),
        ("2020-11-06T00:00:00Z", "2020-11-06"),
        ("2016-09-15T00:00:00+02:00", "2016-09-15"),
        ("2020-11-06T", None),
        ("2020-11T00:00:00Z", None),
        ("2021-02-29T00:00:00Z", None),
        ("2020-11-06 00:00:00", None),
        (" 2020", None),
        ("２０２０", None),  # noqa: RUF001 - wide digits are none here
        ("", None),
        (2020, None),
        (None, None),
        ([], None),
        (..., None),
    ],
)
def test_a_date_keeps_its_precision_and_a_bad_one_is_none(text: Any, published: str | None) -> None:
    assert read_one(publishedDate=text).published == published


@pytest.mark.parametrize(
    ("identifiers", "isbn13"),
    [
        ([("ISBN_13", "9784815602666")], "9784815602666"),
        ([("ISBN_10", "4815602662")], "9784815602666"),
        ([("ISBN_10", "132854396X")], "9781328543967"),
        ([("ISBN_10", "132854396x")], "9781328543967"),
        ([("ISBN_13", "978-4-8156-0266-6")], "9784815602666"),
        ([("ISBN_13", "9784815602667"), ("ISBN_10", "4815602662")], "9784815602666"),
        ([("ISBN_13", "9784815602667")], None),
        ([("ISBN_10", "4815602663")], None),
        ([("ISBN_13", "1234567890128")], None),
        ([("ISBN_13", "978481560266")], None),
        ([("ISBN_13", "97848156026666")], None),
        ([("ISBN_13", "９７８４８１５６０２６６６")], None),  # noqa: RUF001 - wide digits are none here
        ([("OTHER", "UOM:39015012345678"), ("ISSN", "12345678")], None),
        ([("OTHER", "9784815602666")], None),
        ([("OTHER", "x"), ("ISBN_10", "4815602662"), ("ISBN_10", "1")], "9784815602666"),
        ([("ISBN_13", 9784815602666)], None),
        ([], None),
    ],
)
def test_only_right_isbns_are_any(identifiers: list[tuple[str, Any]], isbn13: str | None) -> None:
    listed = [{"type": kind, "identifier": number} for kind, number in identifiers]
    assert read_one(industryIdentifiers=listed).isbn13 == isbn13


@steady
@given(st.integers(0, 10**9 - 1), st.integers(0, 9))
def test_of_all_check_digits_exactly_one_is_right(number: int, wrong: int) -> None:
    digits = f"{number:09}"
    right10 = [sign for sign in "0123456789X" if parse_isbn13(digits + sign)]
    right13 = [sign for sign in "0123456789" if parse_isbn13(f"978{digits}{sign}")]
    assert len(right10) == len(right13) == 1
    assert parse_isbn13(digits + right10[0]) == f"978{digits}{right13[0]}"
    if str(wrong) != right13[0]:
        assert parse_isbn13(f"978{digits}{wrong}") is None


@pytest.mark.parametrize(
    ("links", "thumbnail"),
    [
        ({"thumbnail": "https://a.test/x"}, "https://a.test/x"),
        ({"thumbnail": "HTTP://a.test/x"}, "https://a.test/x"),
        ({"smallThumbnail": "http://a.test/s"}, "https://a.test/s"),
        (
            {"thumbnail": "javascript:alert(1)", "smallThumbnail": "http://a.test/s"},
            "https://a.test/s",
        ),
        ({"thumbnail": "javascript:alert(1)"}, None),
        ({"thumbnail": "//a.test/x"}, None),
        ({"thumbnail": "http://"}, None),
        ({"thumbnail": "http://["}, None),
        ({"thumbnail": "http://a.test/a b"}, None),
        ({"thumbnail": "http://a.test/\n"}, None),
        ({"thumbnail": "http://a.test/" + "x" * 5000}, None),
        ({"thumbnail": 5}, None),
        ({}, None),
        ([], None),
        (..., None),
    ],
)
def test_a_thumbnail_is_secure_or_none(links: Any, thumbnail: str | None) -> None:
    assert read_one(imageLinks=links).thumbnail == thumbnail


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "data:text/html,x", "/books", "", 5, None, "https://a b"]
)
def test_a_link_that_is_none_of_the_web_is_left_out(link: Any) -> None:
    assert read_one(infoLink=link).info_link is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pageCount": 0}, {"page_count": None}),
        ({"pageCount": -1}, {"page_count": None}),
        ({"pageCount": True}, {"page_count": None}),
        ({"pageCount": "12"}, {"page_count": None}),
        ({"pageCount": 10**30}, {"page_count": None}),
        ({"authors": "小野雅裕"}, {"authors": ()}),
        ({"authors": ["a", 5, None, "", " b\n c "]}, {"authors": ("a", "b c")}),
        ({"categories": {}}, {"categories": ()}),
        ({"subtitle": ["x"]}, {"subtitle": None}),
        ({"description": " "}, {"description": None}),
        ({"description": "a\x00b\ud800"}, {"description": "a\ufffdb\ufffd"}),
        ({"title": "a\x00\x1b[31m\n b"}, {"title": "a\ufffd\ufffd[31m b"}),
        ({"language": 5}, {"language": None}),
        ({"industryIdentifiers": "x"}, {"isbn13": None}),
        ({"industryIdentifiers": [5, None, [], {"type": {}}]}, {"isbn13": None}),
    ],
)
def test_a_field_that_cannot_be_read_is_missing(
    changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    volume = read_one(**changes)
    assert {name: getattr(volume, name) for name in expected} == expected


@pytest.mark.parametrize(
    "item",
    [
        None,
        5,
        "x",
        [],
        {},
        {"id": "x"},
        {"id": "x", "volumeInfo": []},
        {"volumeInfo": {"title": "t"}},
        {"id": 5, "volumeInfo": {"title": "t"}},
        {"id": "", "volumeInfo": {"title": "t"}},
        {"id": "a/b", "volumeInfo": {"title": "t"}},
        {"id": "x", "volumeInfo": {}},
        {"id": "x", "volumeInfo": {"title": " "}},
        {"id": "x", "volumeInfo": {"title": 5}},
    ],
)
def test_a_volume_without_id_or_title_is_refused_and_no_other(item: Any) -> None:
    page = parse_volumes(write_volumes(make_item(), item, make_item()))
    assert len(page.volumes) == 2
    assert [refused.id for refused in page.refused] == ["#1"]
    assert page.refused[0].reason


def test_a_reply_most_of_whose_volumes_cannot_be_used_is_drift() -> None:
    body = write_volumes(make_item(), {}, {})
    with pytest.raises(Invalid) as caught:
        parse_volumes(body)
    assert caught.value.page == body


@pytest.mark.parametrize("number", [1, 2])
def test_a_volume_or_two_without_a_title_may_be_all_that_is_left(number: int) -> None:
    page = parse_volumes(write_volumes(*[{"id": "x", "volumeInfo": {}}] * number))
    assert (len(page.volumes), len(page.refused)) == (0, number)


@pytest.mark.parametrize(
    "changes", [{"items": ...}, {"items": None}, {"items": []}, {"items": ..., "totalItems": 0}]
)
def test_a_reply_without_volumes_is_no_error(changes: dict[str, Any]) -> None:
    assert parse_volumes(write_volumes(**changes)).volumes == ()


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        (0, 0),
        (1000000, 1000000),
        (-1, None),
        ("5", None),
        (True, None),
        (1.5, None),
        (10**30, None),
    ],
)
def test_a_total_that_is_none_is_not_known(total: Any, expected: int | None) -> None:
    assert parse_volumes(write_volumes(totalItems=total)).total_items == expected
    assert parse_volumes(write_volumes(totalItems=...)).total_items is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"5",
        b'{"kind": "books#volumes", "items": {}}',
        b'{"kind": "books#volumes", "items": "x"}',
        b'{"kind": "books#bookshelves", "items": []}',
        b'{"kind": ["books#volumes"], "items": []}',
        b'{"totalItems": 1',
        b"<!DOCTYPE html><title>Sorry</title>",
        b"\xff\xfe\xff",
        b"[" * 100_000,
        b'{"items":' * 100_000,
        complain(429, "Queries per day"),
    ],
)
def test_what_is_no_list_of_volumes_is_drift_with_the_page_kept(body: bytes) -> None:
    with pytest.raises(Invalid) as caught:
        parse_volumes(body)
    assert caught.value.page == body


def test_what_is_read_can_pass_between_processes() -> None:
    page = parse_volumes(write_volumes(make_item(), {}))
    assert pickle.loads(pickle.dumps(page)) == page


anything: st.SearchStrategy[Any] = st.one_of(
    *map(st.just, [None, True, -1, 10**30, 1.5, float("nan"), "", "\ud800", "\x00", [], {}, [[]]]),
    st.text(max_size=20),
    st.integers(),
)


@steady
@given(
    st.lists(st.tuples(st.sampled_from(sorted(make_item()["volumeInfo"])), anything), max_size=6),
    st.dictionaries(st.sampled_from(["kind", "totalItems", "items", "x"]), anything, max_size=2),
)
def test_no_changed_value_raises_anything_but_drift(
    changes: list[tuple[str, Any]], outer: dict[str, Any]
) -> None:
    item = make_item(**{name: deepcopy(value) for name, value in changes})
    try:
        page = parse_volumes(write_volumes(item, **outer))
    except Invalid:
        return
    assert all(volume.title for volume in page.volumes)


@steady
@given(st.integers(0, len(write_volumes(make_item()))), st.binary(max_size=10))
def test_no_cut_reply_raises_anything_but_drift(end: int, rest: bytes) -> None:
    try:
        parse_volumes(write_volumes(make_item())[:end] + rest)
    except Invalid:
        return
