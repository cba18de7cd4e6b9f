"""Each target is sent its messages in their order, retried, and shows what was in the way."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.deliverer import BACKOFF
from mimawari.notify.models import How, SendState
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from tests.conftest import Databases
from tests.notify.catcher import Catcher
from tests.notify.scene import FELL, Scene

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
async def scene(
    databases: Databases, clock: VirtualClock, catcher: Catcher
) -> AsyncIterator[Scene]:
    store = SqlStore(await databases.ready(), clock)
    yield Scene(store, clock, catcher.settings)
    await store.close()


async def test_a_target_that_fails_holds_up_no_other_says_why_and_gets_all_in_order(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    catcher.answers["/bad"] = (503, "later")
    bad = await scene.add("bad", catcher.url("bad"))
    await scene.add("good", catcher.url("good"))
    await scene.tell("a", "b")
    rounds = scene.start()
    await rounds.deliverer.tick()
    assert catcher.bodies("good") == ["a: 130,000ja", "b: 130,000ja"]
    first, second = await scene.sends(bad)
    assert (first.state, first.attempts) == (SendState.PENDING, 1)
    assert first.reason == "the receiver answered 503"
    assert (second.state, second.attempts) == (SendState.PENDING, 0)
    del catcher.answers["/bad"]
    await clock.advance(DAY)
    await rounds.deliverer.tick()
    assert catcher.bodies("bad") == ["a: 130,000ja", "a: 130,000ja", "b: 130,000ja"]
    assert {one.state for one in await scene.sends(bad)} == {SendState.SENT}


async def test_a_message_that_nobody_takes_is_given_up_and_the_next_one_goes_on(
    scene: Scene, clock: VirtualClock
) -> None:
    shut = Scene(scene.store, clock, DEFAULTS)
    target = await shut.add("shut", "mailto:ann@example.org")
    await shut.tell("a")
    rounds = shut.start()
    for _ in range(len(BACKOFF) + 1):
        await rounds.deliverer.tick()
        await clock.advance(DAY)
    [send] = await shut.sends(target)
    assert (send.state, send.attempts) == (SendState.FAILED, len(BACKOFF) + 1)
    assert "no mail server is set" in (send.reason or "")
    assert (await scene.store.outbox.counts())["failed"] == 1


async def test_a_daily_digest_comes_at_its_time_in_the_zone_of_the_app(
    scene: Scene, catcher: Catcher, clock: VirtualClock
) -> None:
    await scene.add("daily", catcher.url(), how=How.DAILY, kinds=(FELL.kind,), language="en")
    for name in ("a", "b", "c"):
        await scene.tell(name)
        await scene.start().pass_time(HOUR)
    await scene.start().pass_time(19 * HOUR)
    assert catcher.caught == []
    await scene.start().pass_time(2 * HOUR)
    [body] = catcher.bodies()
    assert body.count("\n") == 2
    await scene.start().pass_time(DAY)
    assert len(catcher.caught) == 1


async def test_what_waits_is_told_when_its_target_is_told_at_once_from_now_on(
    scene: Scene, catcher: Catcher
) -> None:
    target = await scene.add("daily", catcher.url(), how=How.DAILY, kinds=(FELL.kind,))
    await scene.tell("a")
    rounds = scene.start()
    await rounds.deliverer.tick()
    assert catcher.caught == []
    await scene.change(target, how=How.AT_ONCE)
    await scene.start().pass_time(2 * DAY)
    assert catcher.bodies() == ["a: 130,000ja"]


async def test_a_target_that_is_switched_off_is_sent_nothing_and_its_messages_say_so(
    scene: Scene, catcher: Catcher
) -> None:
    target = await scene.add("off", catcher.url())
    await scene.tell("a")
    destinations = scene.watches().open_destinations(scene.store, scene.clock)
    [event] = await scene.store.outbox.take(scene.clock.now(), 5, HOUR)
    await destinations["tell"].deliver(event)
    await scene.change(target, enabled=False)
    await scene.start().deliverer.tick()
    [send] = await scene.sends(target)
    assert (send.state, send.reason) == (SendState.FAILED, "its target is switched off")
    assert catcher.caught == []
