"""The cache's promises, on every engine."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from random import Random

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from tests.stores import open_again

HOUR, MICROSECOND = timedelta(hours=1), timedelta(microseconds=1)


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """The same database as another process opens it."""
    twin = open_again(store, clock)
    yield twin
    await twin.close()


async def fill(store: SqlStore, *keys: str, ttl: timedelta = HOUR) -> None:
    for key in keys:
        await store.cache.set(key, key.encode(), ttl)


async def kept(store: SqlStore, *keys: str) -> set[str]:
    return {key for key in keys if await store.cache.get(key) == key.encode()}


async def test_what_was_never_set_is_not_there(store: SqlStore) -> None:
    assert await store.cache.get("page") is None


async def test_a_value_is_returned_as_it_was_set(store: SqlStore) -> None:
    await store.cache.set("page", b"hello", HOUR)
    assert await store.cache.get("page") == b"hello"


async def test_a_value_is_there_to_the_last_moment_of_its_ttl_and_no_longer(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.cache.set("page", b"hello", HOUR)
    await clock.advance(HOUR - MICROSECOND)
    assert await store.cache.get("page") == b"hello"
    await clock.advance(MICROSECOND)
    assert await store.cache.get("page") is None


@pytest.mark.parametrize("ttl", [timedelta(0), -HOUR])
async def test_a_value_without_time_to_live_is_never_returned(
    store: SqlStore, ttl: timedelta
) -> None:
    await store.cache.set("page", b"old", HOUR)
    await store.cache.set("page", b"new", ttl)
    assert await store.cache.get("page") is None


async def test_setting_a_key_anew_replaces_value_and_ttl(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.cache.set("page", b"old", HOUR)
    await clock.advance(HOUR / 2)
    await store.cache.set("page", b"new", HOUR)
    await clock.advance(HOUR - MICROSECOND)
    assert await store.cache.get("page") == b"new"
    await clock.advance(MICROSECOND)
    assert await store.cache.get("page") is None


async def test_a_shorter_ttl_replaces_a_longer_one(store: SqlStore, clock: VirtualClock) -> None:
    await store.cache.set("page", b"old", 5 * HOUR)
    await store.cache.set("page", b"new", HOUR)
    await clock.advance(HOUR)
    assert await store.cache.get("page") is None


async def test_a_key_that_has_run_out_may_be_set_again(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.cache.set("page", b"old", HOUR)
    await clock.advance(2 * HOUR)
    await store.cache.set("page", b"new", HOUR)
    assert await store.cache.get("page") == b"new"


@pytest.mark.parametrize(
    "value", [b"", b"\x00", bytes(range(256)), b"' \\ % _ \xff\xfe", "日本🦊".encode("utf-16")]
)
async def test_any_bytes_are_kept_as_they_are(store: SqlStore, value: bytes) -> None:
    await store.cache.set("page", value, HOUR)
    assert await store.cache.get("page") == value


async def test_a_large_value_is_kept_whole(store: SqlStore) -> None:
    large = Random(1).randbytes(4_000_000)
    await store.cache.set("page", large, HOUR)
    assert await store.cache.get("page") == large


async def test_keys_that_differ_in_case_only_are_two(store: SqlStore) -> None:
    await fill(store, "page", "Page")
    assert await kept(store, "page", "Page") == {"page", "Page"}
    assert await store.cache.get("PAGE") is None


async def test_keys_that_differ_in_a_last_space_only_are_two(store: SqlStore) -> None:
    await fill(store, "page", "page ")
    assert await kept(store, "page", "page ") == {"page", "page "}


@pytest.mark.parametrize(
    "key", ["'; DROP TABLE cache; --", "a\\b", "%s :key ?", "日本🦊", "", "\n"]
)
async def test_any_text_is_a_key(store: SqlStore, key: str) -> None:
    await store.cache.set(key, b"hello", HOUR)
    assert await store.cache.get(key) == b"hello"
    assert await store.cache.drop(key) == 1
    assert await store.cache.get(key) is None


KEYS = ("page:1", "page:2", "page%x", "page_x", "page\\x", "page/x", "[p]", "other")


@pytest.mark.parametrize(
    ("prefix", "gone"),
    [
        ("page:", {"page:1", "page:2"}),
        ("page%", {"page%x"}),
        ("page_", {"page_x"}),
        ("page\\", {"page\\x"}),
        ("page/", {"page/x"}),
        ("other", {"other"}),
        ("%", set()),
        ("age", set()),
        ("", set(KEYS)),
    ],
)
async def test_a_prefix_is_dropped_by_the_letter(
    store: SqlStore, prefix: str, gone: set[str]
) -> None:
    await fill(store, *KEYS)
    assert await store.cache.drop(prefix) == len(gone)
    assert await kept(store, *KEYS) == set(KEYS) - gone


async def test_a_prefix_is_dropped_by_its_case(store: SqlStore) -> None:
    await fill(store, "page:1", "Page:1")
    assert await store.cache.drop("Page") == 1
    assert await kept(store, "page:1", "Page:1") == {"page:1"}


async def test_a_purge_forgets_what_has_run_out_and_nothing_else(
    store: SqlStore, clock: VirtualClock
) -> None:
    await fill(store, "a", "b", ttl=HOUR)
    await fill(store, "c", ttl=HOUR + MICROSECOND)
    assert await store.cache.purge(clock.now() + HOUR - MICROSECOND) == 0
    assert await store.cache.purge(clock.now() + HOUR) == 2
    assert await kept(store, "a", "b", "c") == {"c"}


async def test_a_second_purge_finds_nothing(store: SqlStore, clock: VirtualClock) -> None:
    await fill(store, "a", "b")
    await clock.advance(HOUR)
    assert [await store.cache.purge(clock.now()) for _ in range(2)] == [2, 0]


async def test_another_process_sees_and_drops_the_same_values(
    store: SqlStore, twin: SqlStore
) -> None:
    await fill(store, "page:1", "page:2")
    assert await kept(twin, "page:1", "page:2") == {"page:1", "page:2"}
    assert await twin.cache.drop("page:1") == 1
    assert await kept(store, "page:1", "page:2") == {"page:2"}


async def test_setting_one_key_from_many_sides_leaves_one_whole_value(
    store: SqlStore, twin: SqlStore
) -> None:
    values = [bytes([at]) * 50_000 for at in range(10)]
    setters = [
        (store, twin)[at % 2].cache.set("page", value, HOUR) for at, value in enumerate(values)
    ]
    await asyncio.gather(*setters)
    assert await store.cache.get("page") in values
    assert await store.cache.drop("") == 1
