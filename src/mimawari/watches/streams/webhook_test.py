"""Tries a monitor's receiver: what is sent is real and signed, and what came of it is told."""

from dataclasses import dataclass

import httpx2

from mimawari.edges.system import System
from mimawari.errors import Transient
from mimawari.ids import new_id
from mimawari.kernel.exchange import Exchange, find_exchange
from mimawari.net.webhook import Hook, post
from mimawari.text import one_line
from mimawari.watches.streams import actions, queries
from mimawari.watches.streams.deliveries import find_key, open_way, write_body
from mimawari.watches.streams.events import write_payload
from mimawari.watches.streams.models import EventType, Monitor, Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What came of a test: what was said to and fro, or why nothing could be sent."""

    is_example: bool
    """Nothing was told of this monitor yet, so something made up was sent."""
    exchange: Exchange | None
    problem: str | None


async def send_test(
    system: System, monitor_id: str, way: httpx2.AsyncBaseTransport | None = None
) -> Tested:
    """Send a monitor's last event, or a marked example, once to its receiver."""
    view = await actions.find(system, monitor_id)
    async with system.store.read() as reader:
        told, _ = await queries.list_events(reader, view.monitor.id, 1, 0)
    payload = told[0].payload if told else _make_example(system, view.monitor)
    hook = Hook(
        url=view.monitor.callback_url,
        body=write_body(payload),
        # Another id: who has the real one already would take this for it.
        event_id=new_id(),
        is_test=True,
    )
    opened = way or open_way(system.settings)
    try:
        said = await post(opened, hook, find_key(system.settings), system.clock)
    except Transient as error:
        problem = one_line(str(error))
        return Tested(is_example=not told, exchange=find_exchange(error), problem=problem)
    finally:
        if opened is not way:
            await opened.aclose()
    return Tested(is_example=not told, exchange=said, problem=None)


def _make_example(system: System, monitor: Monitor) -> dict[str, object]:
    now = system.clock.now()
    data = {"example": True, "started_at": now, "title": "Example"}
    notice = Notice(type=EventType.STARTED, at=now, data=data)
    return write_payload(monitor, notice, system.settings.zone)
