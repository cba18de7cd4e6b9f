"""Webhooks as §4.4, §10.2 and §12.2 promise: in order, signed anew each time, and given up."""

import hmac
import json
from hashlib import sha256
from typing import Any

import httpx2
import pytest
from sqlalchemy import select

from mimawari.kernel.exchange import NotTaken
from mimawari.kernel.values import Event
from mimawari.net.webhook import EVENT_ID, SIGNATURE, TEST, TIMESTAMP
from mimawari.sim.sites.webhooks import KEY
from mimawari.sim.sites.youtube.programme import Shot
from mimawari.store.sql.tables import attempts, outbox
from mimawari.watches.streams.deliveries import WebhookDestination
from mimawari.watches.streams.models import Status
from mimawari.watches.streams.webhook_test import send_test
from tests.streams.scene import ADDRESS, EVENING, OTHER, Scene, at

HOOK = "/hooks/seen"
QUICK: dict[str, Any] = {
    "check_interval_sec": 1,
    "blackout_threshold_sec": 4,
    "silence_threshold_sec": 4,
}


class Noting(httpx2.AsyncBaseTransport):
    """Notes every request, and answers the first ones with what is planned."""

    def __init__(self, way: httpx2.AsyncBaseTransport, *planned: int) -> None:
        self._way = way
        self._planned = list(planned)
        self.requests: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer as planned, then as the receiver does."""
        self.requests.append(request)
        if self._planned:
            return httpx2.Response(self._planned.pop(0))
        return await self._way.handle_async_request(request)


def is_signed(request: httpx2.Request) -> bool:
    """Check a signature as a receiver would, over the very bytes that came."""
    signed = request.headers[TIMESTAMP].encode() + b"." + request.content
    digest = hmac.new(KEY.encode(), signed, sha256).hexdigest()
    return request.headers[SIGNATURE] == f"sha256={digest}"


async def test_4_4_a_webhook_that_fails_is_sent_again_after_1_2_and_4_s(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.order("hooks", do="status", code=500, times=3)
    monitor = await scene.add()
    await scene.pass_time(20)
    assert scene.times(HOOK, "hooks") == [0, 1, 3, 7]
    assert scene.told() == ["stream.started"]
    [sending] = await scene.sendings(monitor)
    assert (sending.status, sending.attempts) == ("sent", 4)
    assert sending.last_error == "the receiver answered 500"
    assert sending.sent_at == at(7)
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING


async def test_12_2_each_attempt_has_its_own_time_and_signature_and_one_id_over_all(
    scene: Scene,
) -> None:
    scene.put(starts_at=at(-60))
    way = Noting(scene.inside, 500, 500)
    scene.send_by(way)
    monitor = await scene.add()
    await scene.pass_time(5)
    start = int(EVENING.timestamp())
    assert [int(one.headers[TIMESTAMP]) - start for one in way.requests] == [0, 1, 3]
    assert all(map(is_signed, way.requests))
    assert len({one.headers[SIGNATURE] for one in way.requests}) == 3
    assert len({one.content for one in way.requests}) == 1
    [sending] = await scene.sendings(monitor)
    assert {one.headers[EVENT_ID] for one in way.requests} == {sending.id}
    assert json.loads(way.requests[0].content) == sending.payload
    assert [one["is_verified"] for one in scene.received()] == [True]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_4_4_any_2xx_is_success(scene: Scene, code: int) -> None:
    scene.put(starts_at=at(-60))
    scene.order("hooks", do="status", code=code)
    monitor = await scene.add()
    await scene.pass_time(5)
    [sending] = await scene.sendings(monitor)
    assert (sending.status, sending.attempts, sending.last_error) == ("sent", 1, None)


@pytest.mark.parametrize("code", [304, 400, 401, 404, 410, 429, 500, 503])
async def test_4_4_anything_else_is_tried_again_4_times_in_all(scene: Scene, code: int) -> None:
    scene.put(starts_at=at(-60))
    scene.order("hooks", do="status", code=code)
    monitor = await scene.add(check_interval_sec=30)
    await scene.pass_time(20)
    assert scene.times(HOOK, "hooks") == [0, 1, 3, 7]
    assert (await scene.show(monitor)).monitor.status is Status.ERROR


async def test_4_4_a_redirect_is_a_failure_and_never_followed(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.order("hooks", path=HOOK, do="redirect", url=f"{ADDRESS}/hooks/elsewhere")
    monitor = await scene.add(check_interval_sec=30)
    await scene.pass_time(20)
    assert scene.seen("/hooks/elsewhere", "hooks") == []
    [sending] = await scene.sendings(monitor)
    assert sending.last_error == "the receiver answered 302, which is not followed"


async def test_4_4_all_failed_ends_the_monitor_without_an_event_and_nothing_more_is_sent(
    scene: Scene,
) -> None:
    scene.put(Shot(what="black", start=0), starts_at=at(-60))
    number = scene.order("hooks", do="status", code=500)
    monitor = await scene.add(**QUICK)
    await scene.pass_time(8)
    view = await scene.show(monitor)
    assert view.monitor.status is Status.ERROR
    assert view.reason == "the callback failed for good: the receiver answered 500"
    assert view.ended_at == at(7)
    assert not await scene.is_scheduled(monitor)
    scene.world.orders.remove(number)
    await scene.pass_time(3600)
    # Neither what waited behind it nor a monitor.error is sent, though it would arrive now.
    assert scene.told() == []
    started, black = await scene.sendings(monitor)
    assert (started.event_type, started.status, started.attempts) == ("stream.started", "failed", 4)
    assert (black.event_type, black.status, black.attempts) == ("alert.blackout", "failed", 0)
    assert black.last_error == "not sent: the receiver answered 500"
    assert black.sent_at is None


async def test_4_4_a_monitor_that_was_over_by_then_stays_as_it_is(scene: Scene) -> None:
    scene.put(starts_at=at(-60), seconds=62)
    scene.order("hooks", do="status", code=500)
    monitor = await scene.add(check_interval_sec=1)
    await scene.pass_time(20)
    view = await scene.show(monitor)
    assert view.monitor.status is Status.COMPLETED
    assert [one.status for one in await scene.sendings(monitor)] == ["failed", "failed"]


async def test_4_4_after_its_end_the_same_stream_may_be_monitored_again(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.order("hooks", path="/hooks/broken", do="status", code=500)
    await scene.add(callback=f"{ADDRESS}/hooks/broken")
    await scene.pass_time(8)
    await scene.add()
    await scene.pass_time(5)
    assert scene.told() == ["stream.started"]


async def test_webhooks_of_a_monitor_come_in_order_whatever_fails(scene: Scene) -> None:
    scene.put(Shot(what="black", start=0, end=66), starts_at=at(-60))
    scene.order("hooks", do="status", code=503, times=3)
    monitor = await scene.add(**QUICK)
    await scene.pass_time(20)
    told = ["stream.started", "alert.blackout", "alert.blackout_recovered"]
    assert scene.told() == told
    assert [one.event_type for one in await scene.sendings(monitor)] == told
    assert scene.times(HOOK, "hooks")[:4] == [0, 1, 3, 7]


async def test_a_receiver_that_is_down_holds_up_nobody_else(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.put(starts_at=at(-60), video_id=OTHER)
    scene.order("hooks", path="/hooks/broken", do="status", code=500)
    await scene.add(callback=f"{ADDRESS}/hooks/broken")
    await scene.add(OTHER)
    await scene.pass_time(2)
    assert scene.told() == ["stream.started"]


async def test_9_1_every_payload_is_kept_with_what_became_of_it(scene: Scene) -> None:
    scene.put(starts_at=at(-60), seconds=70)
    monitor = await scene.add()
    await scene.pass_time(30)
    sendings = await scene.sendings(monitor)
    assert [one.payload for one in sendings] == [one["body"] for one in scene.received()]
    assert [one.id for one in sendings] == [one["event_id"] for one in scene.received()]
    assert [(one.status, one.attempts) for one in sendings] == [("sent", 1), ("sent", 1)]
    assert len({one.id for one in sendings}) == 2


async def test_what_was_said_and_answered_is_kept_of_every_attempt(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    scene.send_by(Noting(scene.inside, 500))
    await scene.add()
    await scene.pass_time(5)
    async with scene.store.read() as reader:
        # What people are told of it goes its own way.
        mine = attempts.join(outbox, outbox.c.id == attempts.c.event_id)
        query = select(attempts).select_from(mine).where(outbox.c.kind == "stream.started")
        rows = (await reader.execute(query.order_by(attempts.c.id))).all()
    assert [(one.number, one.result, one.status) for one in rows] == [
        (1, "again", 500),
        (2, "delivered", 204),
    ]
    request = json.loads(rows[1].request)
    assert request["headers"][EVENT_ID] != rows[1].event_id
    assert json.loads(request["body"])["event_type"] == "stream.started"


async def test_an_ended_event_is_sent_once_more_under_its_own_id(scene: Scene) -> None:
    scene.put(starts_at=at(-60))
    monitor = await scene.add()
    await scene.pass_time(5)
    [sending] = await scene.sendings(monitor)
    way = Noting(scene.inside, 500)
    webhooks = WebhookDestination(scene.store, scene.clock, scene.settings, way=way)
    event = Event(
        id="x", key="k", kind="stream.started", body={"event_id": sending.id},
        destination="stream-webhook:", attempt=2, token=0, created_at=at(0),
    )  # fmt: skip
    with pytest.raises(NotTaken):
        await webhooks.resend(event)
    [after] = await scene.sendings(monitor)
    assert (after.status, after.attempts) == ("sent", 2)
    assert (await scene.show(monitor)).monitor.status is Status.MONITORING
    said = await webhooks.resend(event)
    assert said.status == 204
    assert {one.headers[EVENT_ID] for one in way.requests} == {sending.id}
    assert all(map(is_signed, way.requests))


async def test_a_test_sends_the_last_event_or_a_marked_example(scene: Scene) -> None:
    scene.put(starts_at=at(60))
    monitor = await scene.add()
    way = Noting(scene.inside)
    tested = await send_test(scene, monitor.id, way)
    assert tested.is_example
    assert tested.exchange is not None
    assert json.loads(tested.exchange.body)["data"]["example"] is True
    await scene.pass_time(65)
    [sending] = await scene.sendings(monitor)
    tested = await send_test(scene, monitor.id, way)
    assert (tested.is_example, tested.problem) == (False, None)
    assert json.loads(way.requests[-1].content) == sending.payload
    assert way.requests[-1].headers[EVENT_ID] != sending.id
    assert all(is_signed(one) and one.headers[TEST] == "1" for one in way.requests)
    refused = await send_test(scene, monitor.id, Noting(scene.inside, 410))
    assert refused.problem == "the receiver answered 410"
    assert refused.exchange is not None
    assert refused.exchange.status == 410
