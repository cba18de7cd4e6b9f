"""Leave that is given back takes no place under its limit, on every engine."""

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from tests.conformance.test_limiter import HOUR, HOURLY, granted, refused


async def test_what_is_given_back_takes_no_place_and_still_keeps_the_next_one_apart(
    store: SqlStore, clock: VirtualClock
) -> None:
    start = clock.now()
    grant = await granted(store)
    for _ in range(2):
        await store.limiter.release(grant)
        assert await store.limiter.used(HOURLY) == 0
    assert (await refused(store)).until == start + HOUR / 5
    for _ in range(5):
        await clock.advance(HOUR / 5)
        await granted(store)
    assert await store.limiter.used(HOURLY) == 5
