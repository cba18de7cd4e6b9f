"""What the simulated catalogue promises: one truth by seed and time, found by its words."""

import json
import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.google_books.site import ORIGIN_AT, Books
from tests.sim.asking import KEY, ask, call, captured, running

SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(ORIGIN_AT + timedelta(days=2))


@pytest.fixture
def api(clock: VirtualClock) -> Books:
    return Books(clock, 7, spells=False)


async def walk(api: Books, clock: VirtualClock, **parameters: object) -> list[Any]:
    """Read page after page until one is empty."""
    found: list[Any] = []
    while True:
        clock.step(SECOND)
        status, body = await call(api, startIndex=len(found), maxResults=40, **parameters)
        assert status == 200
        if "items" not in body:
            return found
        found += body["items"]


def about(volume: Any) -> Any:
    return volume["volumeInfo"]


def text_of(volume: Any) -> str:
    named = about(volume)
    words = (named["title"], named.get("subtitle", ""), *named.get("authors", ()))
    return " ".join((*words, *named.get("categories", ()))).casefold()


@given(steps=st.lists(st.integers(0, 5_000), max_size=10))
@settings(max_examples=4, deadline=None)
async def test_how_often_it_is_asked_changes_no_book(steps: list[int]) -> None:
    end = ORIGIN_AT + timedelta(minutes=sum(steps))
    busy_clock = VirtualClock(ORIGIN_AT)
    busy = Books(busy_clock, 3, spells=False)
    calm = Books(VirtualClock(end), 3, spells=False)
    for step in steps:
        busy_clock.step(timedelta(minutes=step))
        await call(busy, q="猫", startIndex=step % 50)
        busy.truth({"q": "python"})
    for q in ("猫", "python", "subject:science"):
        assert busy.truth({"q": q})["books"] == calm.truth({"q": q})["books"]
        assert await call(busy, q=q, startIndex=20) == await call(calm, q=q, startIndex=20)


def test_another_seed_is_another_catalogue(clock: VirtualClock) -> None:
    one, other = (Books(clock, seed).truth({"q": "の"})["books"] for seed in (1, 2))
    assert not {book["id"] for book in one} & {book["id"] for book in other}


@pytest.mark.parametrize(
    "asked",
    [
        {"q": "統計"},
        {"q": "python", "orderBy": "newest"},
        {"q": "subject:computers", "langRestrict": "en"},
        {"q": "鉄道", "printType": "magazines"},
        {"q": "inauthor:汐見"},
    ],
)
async def test_its_pages_give_the_books_that_match_in_their_order_and_end_with_an_empty_one(
    api: Books, clock: VirtualClock, asked: dict[str, str]
) -> None:
    found = [volume["id"] for volume in await walk(api, clock, **asked)]
    assert found == [book["id"] for book in api.truth(asked)["books"]]
    assert len(found) == len(set(found)) > 5


async def test_where_there_are_no_books_there_is_no_list(api: Books) -> None:
    for q in ("zzzz", '""', "isbn:9780000000000", "猫 zzzz"):
        assert await call(api, q=q) == (200, {"kind": "books#volumes", "totalItems": 0})
    status, body = await call(api, q="猫", startIndex=100_000)
    assert status == 200
    assert body.keys() == {"kind", "totalItems"}


async def test_the_total_drifts_from_page_to_page_and_is_at_times_a_million(
    api: Books, clock: VirtualClock
) -> None:
    truth, totals = len(api.truth({"q": "猫"})["books"]), []
    for start in range(0, 200, 5):
        clock.step(SECOND)
        totals.append((await call(api, q="猫", startIndex=start))[1]["totalItems"])
    assert 1_000_000 in totals
    others = [total for total in totals if total != 1_000_000]
    assert len(set(others)) > 10
    assert min(others) < truth < max(others)
    assert all(0.7 * truth < total < 1.7 * truth for total in others)


async def test_new_books_appear_as_time_passes(api: Books, clock: VirtualClock) -> None:
    before = {book["id"] for book in api.truth({"q": "の"})["books"]}
    began_at = clock.now()
    clock.step(timedelta(days=5))
    after = api.truth({"q": "の"})
    new = [book for book in after["books"] if book["id"] not in before]
    assert before < {book["id"] for book in after["books"]}
    assert len(new) > 20
    for book in new:
        assert began_at < datetime.fromisoformat(book["appeared_at"]) <= clock.now()
    assert after["catalogue"] > 3000
    status, body = await call(api, q=f"isbn:{next(b['isbn13'] for b in new if b['isbn13'])}")
    assert status == 200
    assert body["items"][0]["id"] in {book["id"] for book in new}


async def every_volume(api: Books, clock: VirtualClock) -> list[Any]:
    volumes = await walk(api, clock, q="の")
    return volumes + await walk(api, clock, q="subject:computers", langRestrict="en")


async def test_dates_come_in_every_precision_and_fields_are_missing_now_and_then(
    api: Books, clock: VirtualClock
) -> None:
    volumes = [about(volume) for volume in await every_volume(api, clock)]
    dates = {re.sub("[0-9]", "9", named.get("publishedDate", "-")) for named in volumes}
    assert dates == {"9999-99-99", "9999-99", "9999", "-"}
    for name in ("authors", "imageLinks", "industryIdentifiers", "subtitle", "publisher"):
        having = sum(name in named for named in volumes)
        assert 0 < having < len(volumes), name
    assert all(named.get("authors", ["-"]) for named in volumes)
    links = [named["imageLinks"] for named in volumes if "imageLinks" in named]
    assert all(link.startswith("http://") for both in links for link in both.values())


def is_isbn13(text: str) -> bool:
    total = sum(int(digit) * (1, 3)[place % 2] for place, digit in enumerate(text))
    return len(text) == 13 and text[:3] in {"978", "979"} and total % 10 == 0


def is_isbn10(text: str) -> bool:
    values = [10 if digit == "X" else int(digit) for digit in text]
    return len(text) == 10 and sum(n * (10 - i) for i, n in enumerate(values)) % 11 == 0


async def test_numbers_have_the_right_check_digits_and_belong_to_one_book(
    api: Books, clock: VirtualClock
) -> None:
    kinds, seen, endings = set(), [], set()
    for volume in await every_volume(api, clock):
        named = about(volume).get("industryIdentifiers", [])
        found = {entry["type"]: entry["identifier"] for entry in named}
        kinds.add(tuple(entry["type"] for entry in named))
        if "ISBN_13" in found:
            assert is_isbn13(found["ISBN_13"])
            seen.append(found["ISBN_13"])
        if "ISBN_10" in found:
            assert is_isbn10(found["ISBN_10"])
            endings.add(found["ISBN_10"][-1])
        if {"ISBN_10", "ISBN_13"} <= found.keys():
            assert found["ISBN_13"][3:12] == found["ISBN_10"][:9]
    assert len(seen) == len(set(seen)) > 300
    assert endings == set("0123456789X")
    both = {("ISBN_13", "ISBN_10"), ("ISBN_10", "ISBN_13")}
    assert kinds == both | {("ISBN_13",), ("ISBN_10",), ("OTHER",), ()}


@pytest.mark.parametrize(
    ("q", "field"),
    [
        ("python", None),
        ("PYTHON", None),
        ("\uff30\uff39\uff34\uff28\uff2f\uff2e", None),
        ("機械学習", None),
        ("intitle:rust", "title"),
        ('intitle:"Machine Learning"', "title"),
        ("inauthor:Thornwick", "authors"),
        ("subject:cooking", "categories"),
        ("subject:cooking 発酵", "categories"),
        ("SUBJECT:Science\u3000seaweed", "categories"),
    ],
)
async def test_every_word_of_a_query_is_in_every_book_found(
    api: Books, clock: VirtualClock, q: str, field: str | None
) -> None:
    volumes = await walk(api, clock, q=q)
    plain = {"\uff30": "python", "S": "science seaweed"}.get(q[0], q)
    words = re.sub(r'\w+:|"', "", plain).casefold().split()
    assert volumes
    for volume in volumes:
        assert all(word in text_of(volume) for word in words)
        if field:
            value = about(volume)[field]
            held = f"{value} {about(volume).get('subtitle', '')}".casefold()
            assert words[0] in held


async def test_a_part_of_a_word_of_letters_finds_nothing(api: Books) -> None:
    assert (await call(api, q="pytho"))[1]["totalItems"] == 0
    assert (await call(api, q="学習"))[1]["totalItems"] > 0


@pytest.mark.parametrize(
    ("asked", "name", "value"),
    [
        ({"langRestrict": "ja"}, "language", "ja"),
        ({"langRestrict": "en"}, "language", "en"),
        ({"printType": "books"}, "printType", "BOOK"),
        ({"printType": "magazines"}, "printType", "MAGAZINE"),
    ],
)
async def test_languages_and_kinds_are_told_apart(
    api: Books, clock: VirtualClock, asked: dict[str, str], name: str, value: str
) -> None:
    volumes = await walk(api, clock, q="rust", **asked)
    assert volumes
    assert {about(volume)[name] for volume in volumes} == {value}


async def test_the_newest_come_first_where_asked_for_and_undated_ones_last(
    api: Books, clock: VirtualClock
) -> None:
    newest = await walk(api, clock, q="猫", orderBy="newest")
    dates = [about(volume).get("publishedDate", "") for volume in newest]
    assert dates == sorted(dates, reverse=True)
    assert "" in dates
    usual = await walk(api, clock, q="猫")
    assert [volume["id"] for volume in usual] != [volume["id"] for volume in newest]


async def test_a_page_holds_what_was_asked_for(api: Books, clock: VirtualClock) -> None:
    for most in (0, 1, 7, 10, 40):
        clock.step(SECOND)
        status, body = await call(api, q="python", maxResults=most)
        assert (status, len(body.get("items", []))) == (200, most)
    assert len((await call(api, q="python"))[1]["items"]) == 10


@given(q=st.text(min_size=1, max_size=80))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_no_query_breaks_it(api: Books, clock: VirtualClock, q: str) -> None:
    clock.step(SECOND)
    sent = quote(q.encode("utf-8", "replace"))
    response = await ask(api, f"/books/v1/volumes?q={sent}", headers=KEY)
    assert response.status_code in {200, 400}
    json.loads(bytes(response.body))


async def test_words_after_the_32nd_are_left_out(api: Books) -> None:
    few = await call(api, q="python " * 32)
    assert (await call(api, q="python " * 32 + "zzzz"))[1]["items"][0] is not None
    assert len(few[1]["items"]) == 10
    assert (await call(api, q="zzzz " + "python " * 5000))[1]["totalItems"] == 0


@pytest.mark.parametrize(
    ("q", "groups"),
    [
        ("intitle:rust OR inauthor:Thornwick", ["intitle:rust", "inauthor:Thornwick"]),
        ('intitle:"機械学習" OR 猫 OR zzzz', ['intitle:"機械学習"', "猫"]),
        ("subject:cooking 発酵 OR python", ["subject:cooking 発酵", "python"]),
        ("OR python OR OR 猫 OR", ["python", "猫"]),
        ('python OR "" OR 猫', ["python", "猫"]),
        ("rust OR rust", ["rust"]),
    ],
)
def test_a_book_is_found_by_any_group_between_or_that_it_meets_whole(
    api: Books, q: str, groups: list[str]
) -> None:
    each = [{book["id"] for book in api.truth({"q": group})["books"]} for group in groups]
    found = [book["id"] for book in api.truth({"q": q})["books"]]
    assert all(each)
    assert set(found) == set().union(*each)
    assert len(found) == len(set(found))
    if len(groups) > 1:
        assert len(found) > max(map(len, each))


def test_books_with_the_words_of_several_groups_in_their_title_come_first(api: Books) -> None:
    found = [book["id"] for book in api.truth({"q": "python OR の"})["books"]]
    both = {book["id"] for book in api.truth({"q": "intitle:python intitle:の"})["books"]}
    assert 0 < len(both) < len(found)
    assert set(found[: len(both)]) == both


async def test_or_in_other_letters_in_quotes_or_in_a_field_is_a_word(api: Books) -> None:
    for q in ("python or 猫", 'python "OR" 猫', "python intitle:OR 猫"):
        assert (await call(api, q=q))[1]["totalItems"] == 0
    assert (await call(api, q="OR"))[1]["totalItems"] == 0


def test_or_is_not_among_the_32_words(api: Books) -> None:
    few = api.truth({"q": "python"})["books"]
    last = api.truth({"q": "zzzz OR " * 31 + "python"})["books"]
    assert {book["id"] for book in last} == {book["id"] for book in few}
    assert api.truth({"q": "zzzz OR " * 32 + "python"})["books"] == []


def test_it_owns_its_own_paths_and_no_others(api: Books) -> None:
    assert api.name == "books"
    assert all(map(api.owns, ("/books/v1/volumes", "/_books/content")))
    assert not any(map(api.owns, ("/", "/books", "/bookshop", "/rent/")))


async def test_over_a_real_socket_covers_are_where_the_volumes_say(api: Books) -> None:
    async with (
        running(api) as address,
        httpx2.AsyncClient(trust_env=False, timeout=60) as client,
    ):
        url = f"{address}/books/v1/volumes?q={quote('猫')}&maxResults=40"
        volumes = (await client.get(url, headers=KEY)).json()["items"]
        cover = next(about(v)["imageLinks"] for v in volumes if "imageLinks" in about(v))
        assert cover["thumbnail"].startswith(f"{address}/_books/content?id=")
        answer = await client.get(cover["thumbnail"])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/svg+xml"
    assert answer.text.startswith("<svg ")


def shape(value: Any, path: str = "") -> set[str]:
    """Name every key on its way, and the kind of what stands there."""
    if isinstance(value, dict):
        return set().union(*(shape(inner, f"{path}.{key}") for key, inner in value.items()))
    if isinstance(value, list):
        return set().union(*(shape(inner, f"{path}[]") for inner in value))
    return {f"{path}: {type(value).__name__}"}


async def test_volumes_have_no_key_and_no_kind_that_captured_ones_do_not_have(
    api: Books, clock: VirtualClock
) -> None:
    names = ("volumes_5_mixed_dates", "volumes_ja_isbn_1", "volumes_ruby_5")
    real = set().union(*(shape(captured(f"{name}.json")) for name in names))
    volumes = await walk(api, clock, q="python")
    assert shape({"items": volumes, "totalItems": 3, "kind": "books#volumes"}) <= real
