"""The breaker's promises, on every engine."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mimawari.errors import Wait
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.values import BreakerPolicy, BreakerView
from mimawari.store.sql import SqlStore
from tests.stores import open_again

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
TWICE = BreakerPolicy(failures=2, cool_for=HOUR, trial_for=timedelta(minutes=10))
ONCE = BreakerPolicy(failures=1, cool_for=HOUR, trial_for=timedelta(minutes=10))


@pytest.fixture
async def twin(store: SqlStore, clock: VirtualClock) -> AsyncIterator[SqlStore]:
    """The same database as another process opens it."""
    twin = open_again(store, clock)
    yield twin
    await twin.close()


async def away(store: SqlStore, site: str = "site") -> Wait:
    wait = await store.breaker.check(site)
    assert wait is not None
    return wait


async def on_trial(store: SqlStore, clock: VirtualClock) -> None:
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(HOUR)
    assert await store.breaker.check("site") is None


async def test_a_breaker_is_closed_at_first(store: SqlStore) -> None:
    assert await store.breaker.check("site") is None
    assert await store.breaker.find("site") is None
    assert await store.breaker.list() == []


@pytest.mark.parametrize("failures", [1, 2, 4])
async def test_it_opens_after_so_many_failures_in_a_row(
    store: SqlStore, clock: VirtualClock, failures: int
) -> None:
    policy = BreakerPolicy(failures=failures)
    for count in range(1, failures):
        view = await store.breaker.failed("site", policy, "403")
        assert view == BreakerView("site", "closed", count, None, "403")
        assert await store.breaker.check("site") is None
    view = await store.breaker.failed("site", policy, "403")
    assert view == BreakerView("site", "open", failures, clock.now() + HOUR, "403")
    assert await store.breaker.check("site") is not None


async def test_a_success_between_failures_sets_the_count_back(store: SqlStore) -> None:
    for _ in range(3):
        await store.breaker.failed("site", TWICE, "403")
        await store.breaker.worked("site")
    view = await store.breaker.failed("site", TWICE, "403")
    assert (view.state, view.failures) == ("closed", 1)


async def test_an_open_breaker_says_until_when_and_why(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", ONCE, "403 Forbidden")
    wait = await away(store)
    assert (wait.until, wait.reason) == (clock.now() + HOUR, "403 Forbidden")
    assert wait.blocked_by == "breaker site"


async def test_nobody_may_try_a_moment_before_its_time(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(HOUR - MICROSECOND)
    await away(store)
    await clock.advance(MICROSECOND)
    assert await store.breaker.check("site") is None


async def test_of_many_who_ask_at_once_over_two_processes_one_may_try(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(HOUR)
    verdicts = await asyncio.gather(*[s.breaker.check("site") for s in (store, twin) * 8])
    waits = [verdict for verdict in verdicts if verdict is not None]
    assert len(waits) == 15
    assert {wait.until for wait in waits} == {clock.now() + timedelta(minutes=10)}


async def test_a_failed_trial_opens_it_again_at_once(store: SqlStore, clock: VirtualClock) -> None:
    await on_trial(store, clock)
    patient = BreakerPolicy(failures=9, cool_for=timedelta(hours=3))
    view = await store.breaker.failed("site", patient, "429")
    assert view == BreakerView("site", "open", 2, clock.now() + timedelta(hours=3), "429")
    assert (await away(store)).until == view.until


async def test_after_a_failed_trial_the_pause_is_no_longer_for_the_time_the_trial_had(
    store: SqlStore, clock: VirtualClock
) -> None:
    await on_trial(store, clock)
    brisk = BreakerPolicy(failures=1, cool_for=timedelta(minutes=1))
    view = await store.breaker.failed("site", brisk, "429")
    assert view.until == clock.now() + timedelta(minutes=1)


async def test_a_trial_that_worked_closes_it_for_everybody(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    await on_trial(store, clock)
    await store.breaker.worked("site")
    assert [await each.breaker.check("site") for each in (store, twin, store)] == [None] * 3


async def test_after_a_trial_that_worked_all_failures_are_allowed_anew(
    store: SqlStore, clock: VirtualClock
) -> None:
    await on_trial(store, clock)
    await store.breaker.worked("site")
    assert (await store.breaker.failed("site", TWICE, "403")).state == "closed"


async def test_a_trial_whose_caller_died_is_given_to_one_other(
    store: SqlStore, clock: VirtualClock
) -> None:
    await on_trial(store, clock)
    await clock.advance(timedelta(minutes=10) - MICROSECOND)
    await away(store)
    await clock.advance(MICROSECOND)
    verdicts = await asyncio.gather(*[store.breaker.check("site") for _ in range(8)])
    assert verdicts.count(None) == 1


async def test_a_later_time_that_the_site_names_wins(store: SqlStore, clock: VirtualClock) -> None:
    named = clock.now() + DAY
    view = await store.breaker.failed("site", ONCE, "429", until=named)
    assert view.until == named
    assert (await away(store)).until == named


async def test_an_earlier_time_that_the_site_names_does_not_shorten_the_pause(
    store: SqlStore, clock: VirtualClock
) -> None:
    view = await store.breaker.failed("site", ONCE, "429", until=clock.now() + timedelta(minutes=1))
    assert view.until == clock.now() + HOUR


async def test_one_more_refusal_does_not_shorten_the_time_that_the_site_named(
    store: SqlStore, clock: VirtualClock
) -> None:
    named = clock.now() + DAY
    await store.breaker.failed("site", ONCE, "429", until=named)
    await store.breaker.failed("site", ONCE, "403")
    assert (await away(store)).until == named


async def test_an_open_breaker_survives_a_restart(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("site", ONCE, "403")
    await store.close()
    assert (await away(twin)).until == clock.now() + HOUR


async def test_a_counted_failure_survives_a_restart(store: SqlStore, twin: SqlStore) -> None:
    await store.breaker.failed("site", TWICE, "403")
    await store.close()
    assert (await twin.breaker.failed("site", TWICE, "403")).state == "open"


async def test_a_trial_survives_a_restart(
    store: SqlStore, twin: SqlStore, clock: VirtualClock
) -> None:
    await on_trial(store, clock)
    await store.close()
    assert (await away(twin)).until == clock.now() + timedelta(minutes=10)


async def test_failures_at_the_same_moment_are_all_counted(store: SqlStore, twin: SqlStore) -> None:
    policy = BreakerPolicy(failures=99)
    views = await asyncio.gather(
        *[each.breaker.failed("site", policy, "403") for each in (store, twin) * 5]
    )
    assert sorted(view.failures for view in views) == list(range(1, 11))


async def test_the_list_shows_all_that_have_failed_and_no_other(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.breaker.failed("open", ONCE, "403")
    await store.breaker.failed("counted", TWICE, "500")
    await store.breaker.failed("mended", ONCE, "403")
    await store.breaker.worked("mended")
    await store.breaker.worked("unknown")
    assert {view.site: view for view in await store.breaker.list()} == {
        "open": BreakerView("open", "open", 1, clock.now() + HOUR, "403"),
        "counted": BreakerView("counted", "closed", 1, None, "500"),
    }


async def test_looking_on_takes_no_trial(store: SqlStore, clock: VirtualClock) -> None:
    await store.breaker.failed("site", ONCE, "403")
    await clock.advance(HOUR)
    view = await store.breaker.find("site")
    assert [view] == await store.breaker.list()
    assert view is not None
    assert view.state == "open"
    assert await store.breaker.check("site") is None


async def test_a_trial_is_seen_as_one(store: SqlStore, clock: VirtualClock) -> None:
    await on_trial(store, clock)
    view = await store.breaker.find("site")
    trial_until = clock.now() + timedelta(minutes=10)
    assert view == BreakerView("site", "trial", 1, trial_until, "403")


async def test_each_site_has_a_breaker_of_its_own(store: SqlStore) -> None:
    await store.breaker.failed("site", ONCE, "403")
    for other in ("other", "Site", "sit"):
        assert await store.breaker.check(other) is None
        await store.breaker.worked(other)
    await away(store)


async def test_sites_that_differ_in_a_last_space_only_are_two(store: SqlStore) -> None:
    await store.breaker.failed("site", ONCE, "403")
    assert await store.breaker.check("site ") is None


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("<html>\r\n\t<b>No</b>\n", "<html> <b>No</b>"),
        ("a\x00b\ud800c", "a\ufffdb\ufffdc"),
        ("'; DROP TABLE breakers; -- 日本🦊", "'; DROP TABLE breakers; -- 日本🦊"),
        ("x" * 90_000, "x" * 499 + "…"),
    ],
    ids=["lines", "refused", "quotes", "long"],
)
async def test_a_reason_is_kept_on_one_line(store: SqlStore, said: str, kept: str) -> None:
    view = await store.breaker.failed("site", ONCE, said)
    assert view.reason == kept
    assert await store.breaker.find("site") == view
    assert (await away(store)).reason == kept
