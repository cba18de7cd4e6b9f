"""A call that certainly never left is not counted; one that may have been sent is."""

import httpx2
import pytest

from mimawari.errors import Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.net.guard import Forbidden
from mimawari.store.sql import SqlStore
from mimawari.watches.books.jobs import PAGE
from tests.books.scene import Catalogue, open_scene

NEVER_LEFT = {
    "a name that does not resolve": Transient("books.test does not resolve", unsent=True),
    "no connection": httpx2.ConnectError("all attempts failed"),
    "no connection in time": httpx2.ConnectTimeout("it did not answer in time"),
    "an address that is not public": Forbidden("10.0.0.1 is not public"),
}
MAYBE_LEFT = {
    "a reply that broke off": httpx2.ReadError("it broke off"),
    "no reply in time": httpx2.ReadTimeout("it did not answer in time"),
}


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        *(pytest.param(error, 0, id=name) for name, error in NEVER_LEFT.items()),
        *(pytest.param(error, 1, id=name) for name, error in MAYBE_LEFT.items()),
    ],
)
async def test_only_calls_that_may_have_been_sent_count_for_the_day(
    store: SqlStore, clock: VirtualClock, error: Exception, calls: int
) -> None:
    async with open_scene(store, clock, Catalogue(volumes=1), broken=error) as scene:
        await scene.add_job()
        await scene.pass_time(seconds=1)
        usage = await scene.usage()
        assert (usage.calls, usage.reserved) == (calls, 0)
        assert await store.limiter.used(scene.rounds.watches.limit(PAGE)) == calls
