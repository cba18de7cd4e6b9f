"""Every event reaches every target that asked for it, once, whoever dies or fails meanwhile."""

import asyncio
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from mimawari.errors import Transient
from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.values import Event
from mimawari.notify.deliveries import TellDestination
from mimawari.notify.models import How
from mimawari.notify.tables import events, lines, sends
from mimawari.store.sql import SqlStore
from tests.notify.catcher import Catcher
from tests.notify.scene import FELL, GONE, OTHER, Scene

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def scene(store: SqlStore, clock: VirtualClock, catcher: Catcher) -> Scene:
    return Scene(store, clock, catcher.settings)


async def counted(store: SqlStore) -> tuple[int, int, int]:
    """Count events, lines and messages."""
    async with store.read() as reader:
        found = [
            (await reader.execute(select(func.count()).select_from(table))).scalar_one()
            for table in (events, lines, sends)
        ]
    return tuple(found)


async def test_an_event_reaches_every_target_that_asked_for_it_and_no_other(
    scene: Scene, catcher: Catcher
) -> None:
    await scene.add("all", catcher.url("all"))
    await scene.add("rooms", catcher.url("rooms"), watches=("rooms",), language="en")
    await scene.add("gone", catcher.url("gone"), kinds=(GONE.kind,))
    await scene.add("cars", catcher.url("cars"), watches=("cars",))
    await scene.add("off", catcher.url("off"), enabled=False)
    await scene.tell("メゾン見回")
    await scene.tell("a car", kind=OTHER.kind)
    await scene.start().deliverer.tick()
    assert catcher.bodies("all") == ["メゾン見回: 130,000ja", "a car"]
    assert catcher.bodies("rooms") == ["メゾン見回: 130,000en"]
    assert catcher.bodies("cars") == ["a car"]
    assert catcher.bodies("gone") == catcher.bodies("off") == []
    titles = {path: body["title"] for path, body in catcher.caught}
    assert titles == {
        "/all": "見回り: 売約",
        "/rooms": "Mimawari: rent falls",
        "/cars": "見回り: 売約",
    }


async def test_an_event_that_is_delivered_again_is_told_once(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    await scene.add("all", catcher.url())
    event = Event(
        id="e", key="rooms", kind=FELL.kind, body={"name": "a", "yen": 1, "id": 1},
        destination="tell:", attempt=1, token=1, created_at=clock.now(),
    )  # fmt: skip
    for _ in range(3):
        await TellDestination(scene.store, clock, scene.settings).deliver(event)
    assert await counted(scene.store) == (1, 1, 1)
    await scene.start().deliverer.tick()
    assert catcher.bodies() == ["a: 1ja"]


async def test_two_deliverers_of_one_event_tell_it_once(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    await scene.add("all", catcher.url())
    event = Event(
        id="e", key="rooms", kind=FELL.kind, body={"name": "a", "yen": 1, "id": 1},
        destination="tell:", attempt=1, token=1, created_at=clock.now(),
    )  # fmt: skip
    both = [TellDestination(scene.store, clock, scene.settings) for _ in range(4)]
    ends = await asyncio.gather(*(one.deliver(event) for one in both), return_exceptions=True)
    assert all(end is None or isinstance(end, Transient) for end in ends)
    assert await counted(scene.store) == (1, 1, 1)


async def test_events_of_a_span_come_together_also_over_restarts(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    target = await scene.add("group", catcher.url(), how=How.GROUPED, span=HOUR, kinds=(FELL.kind,))
    await scene.tell("a")
    await scene.start().deliverer.tick()
    await clock.advance(HOUR / 2)
    await scene.tell("b")
    rounds = scene.start()
    await rounds.pass_time(HOUR / 4)
    assert catcher.caught == []
    await scene.start().pass_time(HOUR)
    [body] = catcher.bodies()
    assert body.splitlines() == ["・01-01 09:00 a: 130,000ja", "・01-01 09:30 b: 130,000ja"]
    await scene.tell("c")
    await scene.start().pass_time(2 * HOUR)
    assert catcher.bodies()[1:] == ["c: 130,000ja"]
    assert [one.events for one in await scene.sends(target)] == [2, 1]


async def test_old_events_are_forgotten_with_what_was_told_of_them(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    await scene.add("all", catcher.url())
    await scene.tell("a", "b")
    await scene.start().deliverer.tick()
    assert await counted(scene.store) == (2, 2, 2)
    await clock.advance(31 * DAY)
    await scene.tell("c")
    await scene.start().deliverer.tick()
    assert await counted(scene.store) == (1, 1, 1)
