"""Which books are in which digest: each once for each list of those who get them."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from mimawari.watches.books import jobs, mailing
from mimawari.watches.books.models import Search
from mimawari.watches.books.tables import deliveries
from tests.books.waiting import (
    a_volume,
    add_job,
    find_books,
    list_events,
    list_told,
    now_of,
    put_digests,
    settings_for,
)
from tests.conftest import Databases
from tests.net.post_office import ANN, BEN

SETTINGS = settings_for()
MINUTE = timedelta(minutes=1)


async def test_a_digest_has_as_many_books_of_each_job_as_it_mails_at_once(store: SqlStore) -> None:
    await add_job(store, "few", mail_limit=2)
    await add_job(store, "more", mail_limit=3)
    await find_books(store, "few", *range(5))
    await find_books(store, "more", *range(10, 15))
    assert await put_digests(store, SETTINGS) == [5]
    assert await put_digests(store, SETTINGS) == [4]
    assert await put_digests(store, SETTINGS) == [1]
    assert await put_digests(store, SETTINGS) == []
    assert await list_told(store) == [
        ((ANN,), {"few": [0, 1], "more": [10, 11, 12]}),
        ((ANN,), {"few": [2, 3], "more": [13, 14]}),
        ((ANN,), {"few": [4]}),
    ]


async def test_what_was_found_first_is_mailed_first_in_the_order_of_the_site(
    store: SqlStore, clock: VirtualClock
) -> None:
    await add_job(store, mail_limit=3)
    await find_books(store, "new", 9, 7, 8)
    await clock.advance(MINUTE)
    await find_books(store, "new", 1, 3, 2)
    for _ in range(2):
        await put_digests(store, SETTINGS)
    assert await list_told(store) == [
        ((ANN,), {"new": [9, 7, 8]}),
        ((ANN,), {"new": [1, 3, 2]}),
    ]


async def test_a_book_that_two_jobs_found_is_mailed_once_to_the_same_recipients(
    store: SqlStore,
) -> None:
    await add_job(store, "a")
    await add_job(store, "b")
    await find_books(store, "a", 1, 2)
    await find_books(store, "b", 2, 3)
    assert await put_digests(store, SETTINGS) == [3]
    assert await put_digests(store, SETTINGS) == []
    await find_books(store, "b", 1)
    assert await put_digests(store, SETTINGS) == []
    assert await list_told(store) == [((ANN,), {"a": [1, 2], "b": [3]})]


async def test_a_book_that_two_jobs_found_is_mailed_once_to_each_of_two_lists(
    store: SqlStore,
) -> None:
    await add_job(store, "a")
    await add_job(store, "b", recipients=(ANN, BEN))
    await find_books(store, "a", 1, 2)
    await find_books(store, "b", 2, 3)
    assert sorted(await put_digests(store, SETTINGS)) == [2, 2]
    assert await put_digests(store, SETTINGS) == []
    told = dict(await list_told(store))
    assert told == {(ANN,): {"a": [1, 2]}, (ANN, BEN): {"b": [2, 3]}}
    # Neither waits for the other one's server.
    assert len({event.key for event in await list_events(store)}) == 2


async def test_what_was_mailed_is_not_mailed_again_though_the_job_is_made_anew(
    store: SqlStore,
) -> None:
    await add_job(store)
    await find_books(store, "new", 1, 2)
    assert await put_digests(store, SETTINGS) == [2]
    await find_books(store, "new", 1, 2)
    assert await put_digests(store, SETTINGS) == []
    async with store.edit() as tx:
        await jobs.remove_job(tx, "new")
    await add_job(store, recipients=(BEN,))
    await find_books(store, "new", 1, 2, 3)
    assert await put_digests(store, SETTINGS) == [1]
    assert (await list_told(store))[-1] == ((BEN,), {"new": [3]})


async def test_a_list_is_not_told_again_by_a_job_of_another_name(store: SqlStore) -> None:
    await add_job(store)
    await find_books(store, "new", 1)
    await put_digests(store, SETTINGS)
    async with store.edit() as tx:
        await jobs.remove_job(tx, "new")
    await add_job(store, "newer")
    await find_books(store, "newer", 1)
    assert await put_digests(store, SETTINGS) == []


async def test_books_without_an_isbn_are_mailed_only_where_that_is_wanted(store: SqlStore) -> None:
    await add_job(store, mail_limit=1)
    await find_books(store, "new", a_volume(1, isbn=False), 2)
    # One that is not mailed takes nobody's place.
    assert await put_digests(store, SETTINGS) == [1]
    assert await put_digests(store, SETTINGS) == []
    wanted = settings_for(books_mail_unnumbered=True)
    assert await put_digests(store, wanted) == [1]
    assert [told for _, told in await list_told(store)] == [{"new": [2]}, {"new": [1]}]


def off(job: Search) -> Search:
    """Disable a job."""
    return changed(job, enabled=False)


def silent(job: Search) -> Search:
    """Let a job mail nothing."""
    return changed(job, mail_limit=0)


def changed(job: Search, **given: object) -> Search:
    """Change a job."""
    kept = {name: getattr(job, name) for name in Search.__dataclass_fields__}
    return Search(**{**kept, **given})


@pytest.mark.parametrize("change", [off, silent])
async def test_a_job_that_is_disabled_or_silent_mails_nothing_until_it_may(
    store: SqlStore, change: jobs.Change
) -> None:
    await add_job(store)
    await find_books(store, "new", 1)
    async with store.edit() as tx:
        await jobs.change_job(tx, "new", change, SETTINGS, now_of(store))
    assert await put_digests(store, SETTINGS) == []
    async with store.edit() as tx:
        again = lambda job: changed(job, enabled=True, mail_limit=5)  # noqa: E731
        await jobs.change_job(tx, "new", again, SETTINGS, now_of(store))
    assert await put_digests(store, SETTINGS) == [1]


async def test_where_nothing_is_new_nothing_is_mailed_or_told(store: SqlStore) -> None:
    await add_job(store)
    assert await put_digests(store, SETTINGS) == []
    assert await list_told(store) == []
    assert await list_events(store) == []


async def test_books_that_nobody_is_named_for_wait_until_somebody_is(store: SqlStore) -> None:
    await add_job(store, recipients=())
    await find_books(store, "new", 1, 2)
    assert await put_digests(store, SETTINGS) == []
    async with store.read() as reader:
        waiting = await mailing.list_waiting(reader, SETTINGS)
    assert [(one.recipients, one.book.title) for one in waiting] == [((), "Book 1"), ((), "Book 2")]
    assert await list_events(store) == []
    assert await put_digests(store, settings_for(mail_to=(BEN, ANN))) == [2]
    assert await list_told(store) == [((BEN, ANN), {"new": [1, 2]})]


async def test_all_that_wait_are_counted_and_not_only_those_of_the_next_digest(
    store: SqlStore,
) -> None:
    await add_job(store, mail_limit=20)
    await add_job(store, "same", mail_limit=20)
    await add_job(store, "nobody", mail_limit=20, recipients=())
    for name in ("new", "same", "nobody"):
        await find_books(store, name, *range(140))
    async with store.read() as reader:
        # Of two jobs that mail to the same people each book is one; nobody's go to the usual ones.
        assert await mailing.count_waiting(reader, SETTINGS) == 280
        same = settings_for(mail_to=(ANN,))
        assert await mailing.count_waiting(reader, same) == 140
        assert len(await mailing.list_waiting(reader, same)) == 20


async def test_two_who_mail_at_once_put_each_book_into_one_digest(
    store: SqlStore, engine: str, databases: Databases, clock: VirtualClock
) -> None:
    await add_job(store, "a")
    await add_job(store, "b")
    await find_books(store, "a", *range(10))
    await find_books(store, "b", *range(5, 15))
    other = SqlStore(await databases.kept(engine), clock)
    both = Both(SETTINGS)
    made = await asyncio.gather(both.put(store), both.put(other))
    await other.close()
    assert sorted(made) == [[], [15]]
    assert await list_told(store) == [((ANN,), {"a": [*range(10)], "b": [*range(10, 15)]})]
    assert len(await list_events(store)) == 1


class Both:
    """Two who put digests, and begin together where the store lets two write at once."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._meeting = asyncio.Barrier(2)

    async def put(self, store: SqlStore) -> list[int]:
        """Put digests as the task does it: after a look at what is under way."""
        can_meet = not store.database.dialect.writes_one_at_a_time
        async with store.edit() as tx:
            assert not await mailing.is_under_way(tx, now_of(store))
            if can_meet:
                await self._meeting.wait()
            return await mailing.put_digests(tx, self._settings, now_of(store))


async def put_in_vain(store: SqlStore) -> None:
    """Put a digest of two books, and fail before it is committed."""
    async with store.edit() as tx:
        assert await mailing.put_digests(tx, SETTINGS, now_of(store)) == [2]
        raise ZeroDivisionError


async def test_a_digest_its_books_and_its_event_are_there_together_or_not_at_all(
    store: SqlStore,
) -> None:
    await add_job(store)
    await find_books(store, "new", 1, 2)
    with pytest.raises(ZeroDivisionError):
        await put_in_vain(store)
    async with store.read() as reader:
        assert (await reader.execute(select(deliveries))).all() == []
    assert (await list_told(store), await list_events(store)) == ([], [])
    assert await put_digests(store, SETTINGS) == [2]
    (event,) = await list_events(store)
    assert (event.kind, event.state) == (mailing.KIND, "pending")


async def test_books_mailed_to_the_usual_list_are_not_mailed_to_it_again_by_its_name(
    store: SqlStore,
) -> None:
    usual = settings_for(mail_to=(ANN,))
    await add_job(store, "a", recipients=())
    await add_job(store, "b")
    await find_books(store, "a", 1)
    await find_books(store, "b", 1)
    assert await put_digests(store, usual) == [1]
    assert await put_digests(store, usual) == []
