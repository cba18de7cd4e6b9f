"""The cursors' promises, on every engine."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from tests.stores import open_again

HOSTILE = [
    "'; DROP TABLE cursors; --",
    'quotes " and \\ back\\\\slashes \\n',
    "%s %(name)s :name ? {0} $1",
    "日本語 🦊 e\u0301 \u202eRTL \u200b",
    "two\r\nlines\tand a tab",
    "",
    " spaces around ",
    "null",
]


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """The same database as another process opens it."""
    twin = open_again(store, clock)
    yield twin
    await twin.close()


async def fill(store: SqlStore, *names: str) -> None:
    for name in names:
        assert await store.cursor.move(name, f"at {name}", None)


async def test_a_reader_who_never_came_is_nowhere(store: SqlStore) -> None:
    assert await store.cursor.find("feed") is None
    assert await store.cursor.list() == {}


async def test_the_first_move_sets_the_place(store: SqlStore) -> None:
    assert await store.cursor.move("feed", "7", None)
    assert await store.cursor.find("feed") == "7"


async def test_a_move_from_the_place_that_was_seen_counts(store: SqlStore) -> None:
    await store.cursor.move("feed", "7", None)
    assert await store.cursor.move("feed", "8", "7")
    assert await store.cursor.find("feed") == "8"


@pytest.mark.parametrize("seen", [None, "6", "07", "7 ", ""])
async def test_a_move_from_any_other_place_changes_nothing(
    store: SqlStore, seen: str | None
) -> None:
    await store.cursor.move("feed", "7", None)
    assert not await store.cursor.move("feed", "8", seen)
    assert await store.cursor.find("feed") == "7"


async def test_a_move_from_a_place_of_a_reader_who_never_came_makes_nothing(
    store: SqlStore,
) -> None:
    assert not await store.cursor.move("feed", "8", "7")
    assert await store.cursor.find("feed") is None


async def test_a_move_to_the_same_place_counts(store: SqlStore) -> None:
    await store.cursor.move("feed", "7", None)
    assert await store.cursor.move("feed", "7", "7")
    assert await store.cursor.find("feed") == "7"


async def test_places_that_differ_in_case_only_are_two(store: SqlStore) -> None:
    await store.cursor.move("feed", "abc", None)
    assert not await store.cursor.move("feed", "x", "ABC")
    assert await store.cursor.find("feed") == "abc"


@pytest.mark.parametrize("seen", [None, "start"])
async def test_of_many_moves_at_once_over_two_processes_one_wins(
    store: SqlStore, twin: SqlStore, seen: str | None
) -> None:
    if seen is not None:
        await store.cursor.move("feed", seen, None)
    movers = [(each, f"{at}") for at, each in enumerate((store, twin) * 6)]
    won = await asyncio.gather(*[each.cursor.move("feed", to, seen) for each, to in movers])
    assert won.count(True) == 1
    assert await store.cursor.find("feed") == movers[won.index(True)][1]


async def test_what_many_count_together_is_counted_once_each(
    store: SqlStore, twin: SqlStore
) -> None:
    await store.cursor.move("count", "0", None)

    async def count(each: SqlStore) -> int:
        seen = await each.cursor.find("count")
        assert seen is not None
        return int(await each.cursor.move("count", str(int(seen) + 1), seen))

    rounds = [await asyncio.gather(*map(count, (store, twin) * 3)) for _ in range(5)]
    assert await store.cursor.find("count") == str(sum(map(sum, rounds)))
    assert all(any(round_) for round_ in rounds)


async def test_a_place_survives_a_restart(store: SqlStore, twin: SqlStore) -> None:
    await store.cursor.move("feed", "7", None)
    await store.close()
    assert await twin.cursor.find("feed") == "7"


async def test_a_removed_place_is_gone_and_may_be_set_anew(store: SqlStore) -> None:
    await store.cursor.move("feed", "7", None)
    assert await store.cursor.remove("feed")
    assert await store.cursor.find("feed") is None
    assert await store.cursor.move("feed", "1", None)


async def test_removing_takes_one_place_and_says_whether_it_was_there(store: SqlStore) -> None:
    await fill(store, "feed", "feed2")
    assert not await store.cursor.remove("fee_")
    assert await store.cursor.remove("feed")
    assert not await store.cursor.remove("feed")
    assert await store.cursor.list() == {"feed2": "at feed2"}


async def test_all_places_are_listed_with_their_names(store: SqlStore) -> None:
    await fill(store, "b", "a", "c")
    assert await store.cursor.list() == {"a": "at a", "b": "at b", "c": "at c"}
    assert list(await store.cursor.list()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("feed:", {"feed:1", "feed:2"}),
        ("feed%", {"feed%x"}),
        ("feed_", {"feed_x"}),
        ("feed\\", {"feed\\x"}),
        ("feed/", {"feed/x"}),
        ("[f]", {"[f]"}),
        ("%", set()),
        ("eed", set()),
    ],
)
async def test_a_prefix_is_taken_by_the_letter(
    store: SqlStore, prefix: str, names: set[str]
) -> None:
    await fill(store, "feed:1", "feed:2", "feed%x", "feed_x", "feed\\x", "feed/x", "[f]", "other")
    assert set(await store.cursor.list(prefix)) == names


async def test_a_prefix_is_taken_by_its_case(store: SqlStore) -> None:
    await fill(store, "feed:1", "Feed:1", "FEED:1")
    assert set(await store.cursor.list("Feed")) == {"Feed:1"}


async def test_names_that_differ_in_case_only_are_two(store: SqlStore) -> None:
    await fill(store, "feed", "Feed")
    assert await store.cursor.find("Feed") == "at Feed"
    assert await store.cursor.find("FEED") is None


async def test_names_that_differ_in_an_accent_only_are_two(store: SqlStore) -> None:
    await fill(store, "e", "\u00e9", "e\u0301")
    assert len(await store.cursor.list()) == 3


async def test_names_that_differ_in_a_last_space_only_are_two(store: SqlStore) -> None:
    await store.cursor.move("feed", "7", None)
    assert await store.cursor.find("feed ") is None
    assert await store.cursor.move("feed ", "8", None)
    assert await store.cursor.find("feed") == "7"


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_text_is_kept_as_it_is(store: SqlStore, text: str) -> None:
    assert await store.cursor.move(text, text, None)
    assert await store.cursor.find(text) == text
    assert await store.cursor.move(text, text + "!", text)
    assert await store.cursor.list(text) == {text: text + "!"}
    assert await store.cursor.remove(text)


async def test_a_big_place_is_kept_whole_and_compared_whole(store: SqlStore) -> None:
    big = "日本" * 500_000
    await store.cursor.move("feed", big, None)
    assert await store.cursor.find("feed") == big
    assert not await store.cursor.move("feed", "8", big[:-1])
    assert await store.cursor.move("feed", "8", big)
