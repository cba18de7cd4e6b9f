"""An incident is said once after so many failures, reminded, and said when it is over."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mimawari.errors import Blocked, Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job
from mimawari.kernel.values import BreakerPolicy, Entry
from mimawari.kernel.watch import Task, task
from mimawari.notify import queries
from mimawari.notify.incidents import KINDS
from mimawari.notify.targets import MEMBER
from mimawari.store.sql import SqlStore
from mimawari.store.sql.link import NearLink
from tests.conftest import Databases
from tests.notify.catcher import Catcher
from tests.notify.scene import Scene

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


class Site:
    """A site that works, fails or turns us away."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def task(self) -> Task:
        """Make a task that asks it."""

        @task("rooms.list", attempts=2, backoff="10m")
        async def ask(job: Job, ctx: Context) -> None:
            if self.error is not None:
                raise self.error
            async with ctx.commit(job) as tx:
                tx.next_run(ctx.clock.now() + HOUR)

        return ask


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
async def scene(
    databases: Databases, clock: VirtualClock, catcher: Catcher, site: Site
) -> AsyncIterator[Scene]:
    store = SqlStore(await databases.ready(), clock)
    # Threads are for those who must not wait; here time itself does.
    store.database.link = NearLink(store.database.link.engine)
    settings = catcher.settings.model_copy(update={"incident_remind": 90 * MINUTE})
    scene = Scene(store, clock, settings, (site.task(),))
    await scene.add("people", catcher.url(), kinds=KINDS, watches=("rooms",), language="en")
    entry = Entry(member="rooms:1", kind="rooms.list", next_at=clock.now(), every=HOUR)
    await store.schedule.put([entry])
    yield scene
    await store.close()


async def test_a_target_that_keeps_failing_is_said_once_reminded_and_said_when_over(
    scene: Scene, site: Site, catcher: Catcher
) -> None:
    site.error = Transient("503")
    rounds = scene.start()
    await rounds.pass_time(50 * MINUTE)
    assert catcher.caught == []
    await rounds.pass_time(30 * MINUTE)
    assert catcher.bodies() == ["the attic failed 3 times in a row: 503"]
    # Whoever starts anew has nothing to say.
    await scene.start().pass_time(60 * MINUTE)
    assert len(catcher.caught) == 1
    await scene.start().pass_time(45 * MINUTE)
    assert len(catcher.bodies()) == 2
    assert catcher.bodies()[1].startswith("the attic still fails, ")
    site.error = None
    await scene.start().pass_time(70 * MINUTE)
    assert catcher.bodies()[2:] == ["the attic: over, it works again"]
    site.error = Transient("504")
    await scene.start().pass_time(2 * HOUR)
    assert catcher.bodies()[3:] == ["the attic failed 3 times in a row: 504"]


async def test_a_site_that_turns_us_away_is_an_incident_of_the_watches_that_ask_it(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    policy = BreakerPolicy(failures=1, cool_for=HOUR)
    rooms = scene.watches().all[0]
    assert rooms.name == "rooms"
    for _ in range(2):
        await scene.store.breaker.failed("rooms-site", policy, "403")
    await scene.start().pass_time(5 * MINUTE)
    assert catcher.caught == []
    await scene.store.breaker.failed("rooms-site", policy, "403")
    everybody = await scene.add("all", catcher.url("all"), kinds=KINDS)
    await scene.start().pass_time(5 * MINUTE)
    # It is no site of the rooms watch, so only who is told of all hears of it.
    assert catcher.bodies() == []
    assert len(catcher.bodies("all")) == 1
    await scene.store.breaker.worked("rooms-site")
    await scene.start().pass_time(5 * MINUTE)
    assert catcher.bodies("all")[1:] == ["rooms-site: 復旧しました"]
    assert [one.events for one in await scene.sends(everybody)] == [1, 1]


async def test_a_block_is_the_sites_incident_and_not_its_targets_too(
    scene: Scene, site: Site, catcher: Catcher
) -> None:
    site.error = Blocked("rooms-site", "403")
    await scene.start().pass_time(9 * MINUTE)
    assert await scene.store.streaks.list() == []
    assert catcher.caught == []


async def test_nobody_looks_for_incidents_that_nobody_is_told_of(scene: Scene) -> None:
    quiet = await scene.add("quiet", "env:X", kinds=("rooms.gone",))
    assert await scene.store.schedule.find(MEMBER) is not None
    async with scene.store.read() as reader:
        people = await queries.find_named(reader, "people")
    assert people is not None
    await scene.change(people, enabled=False)
    assert await scene.store.schedule.find(MEMBER) is None
    await scene.change(quiet, kinds=())
    assert await scene.store.schedule.find(MEMBER) is not None
