"""The pages of deliveries: which events stand how, where they go, and what they say."""

import json

import pytest
from markupsafe import escape

from mimawari.ids import new_id
from mimawari.kernel.values import Delivery, NewEvent
from mimawari.watches.streams.models import EventType
from mimawari.web.deliveries import A_PAGE
from mimawari.web.written import hide_secrets
from tests.net.sockets import open_server
from tests.web.ground import Browser
from tests.web.scene import GIVEN, HOSTILE, MINUTE, add_monitor, keep, notice, settle_events

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 31\r\n\r\n<script>alert(1)</script> taken\n"
ENGLISH = {"Accept-Language": "en"}


async def put(visitor: Browser, count: int = 1, *, lane: str = "hot:1") -> list[str]:
    """Put events into the outbox, and return their ids."""
    new = [
        NewEvent(
            id=new_id(),
            key=f"{lane}:{number}",
            kind="hot.alert",
            body={"title": HOSTILE, "api_key": "letmein"},
            destination="https://user:letmein@example.org/hook/letmein",
        )
        for number in range(count)
    ]
    await visitor.api.store.outbox.put(new)
    return [event.id for event in new]


async def test_where_nothing_was_told_the_page_says_so(visitor: Browser) -> None:
    assert "該当する送信はありません" in await visitor.see("/deliveries")
    assert "There are no such events" in await visitor.see("/deliveries", **ENGLISH)


async def test_events_are_listed_by_state(visitor: Browser) -> None:
    (arrived,) = await put(visitor, lane="a")
    await settle_events(visitor.api.system, delivered=True)
    (failed,) = await put(visitor, lane="b")
    await settle_events(visitor.api.system, delivered=False, reason=f"503 {HOSTILE}")
    (waiting,) = await put(visitor, lane="c")
    ids = {"delivered": arrived, "failed": failed, "pending": waiting}
    everything = await visitor.see("/deliveries")
    assert all(one in everything for one in ids.values())
    assert escape(f"503 {HOSTILE}") in everything
    assert "<script>alert" not in everything
    for state, wanted in ids.items():
        page = await visitor.see(f"/deliveries?state={state}")
        assert [one for one in ids.values() if one in page] == [wanted]


async def test_a_list_goes_on_below_where_it_ended_and_a_file_holds_all(visitor: Browser) -> None:
    ids = await put(visitor, A_PAGE + 1)
    page = await visitor.see("/deliveries")
    assert (ids[0] in page, f"before={ids[1]}" in page) == (False, True)
    assert ids[0] in await visitor.see(f"/deliveries?before={ids[1]}")
    file = (await visitor.get("/deliveries?format=csv")).text
    assert len(file.splitlines()) == A_PAGE + 2
    assert "letmein" not in file


async def test_an_event_is_shown_with_what_it_says_and_without_secrets(visitor: Browser) -> None:
    (event_id,) = await put(visitor)
    page = await visitor.see(f"/deliveries/{event_id}", **ENGLISH)
    assert "https://example.org/***" in page
    assert "letmein" not in page
    assert "<script>alert" not in page
    assert "alert(1)" in page
    assert (await visitor.get("/deliveries/x")).status_code == 404


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("log:", "log:"),
        ("stream-webhook:mon-1", "stream-webhook:mon-1"),
        ("slack://tokenA/tokenB", "slack://***"),
        ("https://example.org", "https://example.org"),
        ("https://example.org:8443/?token=a", "https://example.org:8443/***"),
        ("https://example.org:x/", "https://***"),
        ("mailto:a@example.org?password=b", "mailto:a@example.org?password=***"),
    ],
)
def test_where_something_goes_is_said_without_what_only_its_owner_knows(
    address: str, shown: str
) -> None:
    assert hide_secrets(address) == shown


@pytest.mark.parametrize("given", [GIVEN], ids=["ready"])
async def test_an_event_that_has_ended_is_sent_once_more_and_shows_what_came_of_it(
    visitor_with: Browser,
) -> None:
    visitor, system = visitor_with, visitor_with.api.system
    visitor.speak("en")
    async with open_server(lambda _: ANSWER) as receiver:
        monitor = await add_monitor(system, callback=f"http://127.0.0.1:{receiver.port}/letmein")
        await keep(system, monitor, notice(EventType.STARTED, system.clock.now(), title=HOSTILE))
        [event] = await system.store.outbox.take(system.clock.now(), 1, MINUTE)
        path = f"/deliveries/{event.id}"
        assert "Send once more" not in await visitor.see(path)
        assert (await visitor.send(f"{path}/resend")).status_code == 422
        lost = Delivery(id=event.id, token=event.token, reason="the receiver answered 500")
        await system.store.outbox.settle([lost])
        assert "Send once more" in await visitor.see(path)
        assert (await visitor.send(f"{path}/resend")).status_code == 303
    page = await visitor.see(path)
    assert "Attempt 2" in page
    assert "Attempt 1" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; taken" in page
    assert f"X-Event-Id: {event.body['event_id']}" in page
    assert "letmein" not in page
    assert "<script>alert" not in page
    [sent] = receiver.bodies
    assert json.loads(sent)["event_type"] == "stream.started"
    counts = await system.store.outbox.counts()
    assert (counts["delivered"], counts["failed"]) == (1, 0)


async def test_what_cannot_be_sent_twice_is_not_sent_once_more(visitor: Browser) -> None:
    (event_id,) = await put(visitor)
    await settle_events(visitor.api.system, delivered=False, reason="503")
    assert "/resend" not in await visitor.see(f"/deliveries/{event_id}")
    assert (await visitor.send(f"/deliveries/{event_id}/resend")).status_code == 422


@pytest.mark.parametrize("given", [GIVEN], ids=["ready"])
async def test_a_test_of_a_receiver_is_really_sent_and_shows_what_really_happened(
    visitor_with: Browser,
) -> None:
    visitor, system = visitor_with, visitor_with.api.system
    visitor.speak("en")
    async with open_server(lambda _: ANSWER) as receiver:
        monitor = await add_monitor(system, callback=f"http://127.0.0.1:{receiver.port}/letmein")
        answer = await visitor.send(f"/streams/{monitor.id}/test")
    page = await visitor.see(answer.headers["location"])
    assert "an example was sent" in page
    assert "It was taken" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; taken" in page
    assert "letmein" not in page
    assert len(receiver.bodies) == 1
    answer = await visitor.send(f"/streams/{monitor.id}/test")
    page = await visitor.see(answer.headers["location"])
    assert "the receiver could not be called" in page
    assert (await system.store.outbox.counts())["pending"] == 0
    assert "It was taken" not in await visitor.see(f"/streams/{monitor.id}?tested=x")
