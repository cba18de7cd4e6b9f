"""What the rentals site's pages may do to us: whatever they hold, they end in a result or drift."""

import json
import pickle
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.errors import Invalid
from mimawari.sites.yahoo_realestate import Property, Room, parse_detail, parse_list
from tests.sites.yahoo_pages import (
    DETAIL_URL,
    GONE,
    LIST_URL,
    make_many,
    make_property,
    write_detail,
    write_list,
    write_others,
)

steady = settings(
    deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=200
)
NOTHING = '<p class="DetailSummary__note"></p>'


def read_property(body: bytes) -> Property | None:
    """Read a property; None is drift, which every page may be."""
    try:
        return parse_detail(body, DETAIL_URL)
    except Invalid:
        return None


anything: st.SearchStrategy[Any] = st.one_of(
    *map(
        st.just, [None, True, -1, 0, 10**30, 1.5, float("nan"), "", "\ud800", "\x00", [], {}, [[]]]
    ),
    st.text(max_size=20),
    st.integers(),
    st.just({"a": {"b": [1]}}),
)


@pytest.mark.parametrize("body", [b"", b"\x00", b"\xff" * 100, b"{}", b"<html></html>", b"null"])
def test_what_is_no_page_of_the_site_is_drift_and_kept(body: bytes) -> None:
    for parse, url in ((parse_list, LIST_URL), (parse_detail, DETAIL_URL)):
        with pytest.raises(Invalid) as caught:
            parse(body, url)
        assert caught.value.page == body


def test_a_page_of_the_depth_that_stops_parsers_is_refused() -> None:
    for parse, url in ((parse_list, LIST_URL), (parse_detail, DETAIL_URL)):
        with pytest.raises(Invalid):
            parse(b"<div>" * 200_000, url)


def test_a_page_with_no_end_of_others_is_read_in_time() -> None:
    many = '<div class="Detail"><img src="https://a.test/x"></div>' * 20_000
    body = write_detail(make_property(), others=many + write_others() * 500)
    assert parse_detail(body, DETAIL_URL) == parse_detail(write_detail(make_property()), DETAIL_URL)


def test_texts_are_made_safe() -> None:
    found = make_property(
        StructureView__BuildingName="A\u0000\ud800\u001b[31mB", LocationView__AddressName="x" * 999
    )
    body = write_detail(GONE).replace(
        b'"recommend"', f'"property": {json.dumps(found)}, "r"'.encode()
    )
    result = parse_detail(body, DETAIL_URL)
    assert result.building_name == "A\ufffd\ufffd\ufffd[31mB"
    assert result.address is not None
    assert len(result.address) == 200


def test_what_is_read_can_pass_between_processes() -> None:
    page = parse_list(write_list(make_many()), LIST_URL)
    found = parse_detail(write_detail(make_property()), DETAIL_URL)
    error = Invalid("not understood", page=b"<p>")
    assert pickle.loads(pickle.dumps((page, found))) == (page, found)
    assert pickle.loads(pickle.dumps(error)).page == b"<p>"


def every_place(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object of a context with each of its keys."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from every_place(value[key])


@steady
@given(st.data())
def test_no_changed_value_of_a_list_raises_anything_but_drift(data: st.DataObject) -> None:
    context = make_many()
    for _ in range(data.draw(st.integers(1, 4))):
        places = list(every_place(context)) or [({"gone": 1}, "gone")]
        holder, key = data.draw(st.sampled_from(places))
        if data.draw(st.booleans()):
            holder[key] = deepcopy(data.draw(anything))
        else:
            del holder[key]
    text = json.dumps(context)
    body = f"<script>window.__SERVER_SIDE_CONTEXT__ = {{page: {text}}};</script>".encode()
    try:
        page = parse_list(body, LIST_URL)
    except Invalid:
        return
    assert all(isinstance(room, Room) for room in page.rooms)


@steady
@given(st.data())
def test_no_cut_or_changed_bytes_of_a_list_raise_anything_but_drift(data: st.DataObject) -> None:
    script = data.draw(st.sampled_from([None, ""]))
    body = write_list(make_many(), script=script)
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 2000)))
    filler = data.draw(st.binary(max_size=20))
    cut = body[:start] if data.draw(st.booleans()) else body[:start] + filler + body[end:]
    try:
        page = parse_list(cut, LIST_URL)
    except Invalid:
        return
    assert all(len(room.property_id.lstrip("_")) == 44 for room in page.rooms)


@steady
@given(st.lists(st.tuples(st.sampled_from(sorted(make_property())), anything), max_size=6))
def test_no_changed_value_of_a_property_raises_anything_but_drift(
    changes: list[tuple[str, Any]],
) -> None:
    found = make_property() | {key: deepcopy(value) for key, value in changes}
    body = write_detail(GONE, summary=NOTHING)
    body = body.replace(b'"recommend"', f'"property": {json.dumps(found)}, "r"'.encode())
    result = read_property(body)
    assert result is None or (result.title and (result.rent_yen or result.rent_note))


@steady
@given(st.data())
def test_no_cut_or_changed_bytes_of_a_property_raise_anything_but_drift(
    data: st.DataObject,
) -> None:
    body = write_detail(data.draw(st.sampled_from([GONE, make_property()])))
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 2000)))
    filler = data.draw(st.binary(max_size=20))
    found = read_property(body[:start] + filler + body[end:])
    assert found is None or found.title


@steady
@given(st.integers(0, len(write_detail(make_property()))), st.booleans())
def test_a_page_that_ends_early_never_gives_the_words_of_another(
    end: int, has_context: bool
) -> None:
    cut = read_property(write_detail(make_property() if has_context else GONE)[:end])
    if cut is None:
        return
    assert cut.rent_yen != 666_000
    assert cut.fee_yen != 66_666
    assert (cut.layout, cut.floor, cut.years_old, cut.built_on) != ("6LDK", 66, 66, "1966-06")
    assert "大阪" not in (cut.address or "")
    assert {way.station for way in cut.stations} <= {"早稲田駅"}
