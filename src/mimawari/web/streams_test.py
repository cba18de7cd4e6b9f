"""Tries the receiver of a monitor's webhooks for a visitor, and shows what came of it."""

import json
from dataclasses import dataclass
from datetime import timedelta

from starlette.responses import Response

from mimawari.ids import new_id
from mimawari.text import clean
from mimawari.watches.streams.webhook_test import send_test
from mimawari.web.exchanges import Shown, dump_exchange, load_exchange, show_exchange
from mimawari.web.visit import Visit

KEPT_FOR = timedelta(hours=1)
_KEPT = "web:tested:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a test, as a page shows it."""

    is_example: bool
    problem: str | None
    said: Shown | None


async def try_receiver(visit: Visit) -> Response:
    """Send a test, and lead to where it is shown, so that nobody sends it twice by looking."""
    monitor_id = clean(visit.request.path_params["monitor_id"])
    tested = await send_test(visit.system, monitor_id)
    said = None if tested.exchange is None else dump_exchange(tested.exchange)
    kept = {"is_example": tested.is_example, "problem": tested.problem, "said": said}
    name = new_id()
    await visit.system.store.cache.set(f"{_KEPT}{name}", json.dumps(kept).encode(), KEPT_FOR)
    return visit.go(f"/streams/{monitor_id}?tested={name}#test")


async def find_tested(visit: Visit) -> Result | None:
    """Find what came of the test that the address names, as long as that is kept."""
    name = visit.text("tested")
    found = await visit.system.store.cache.get(f"{_KEPT}{name}") if name else None
    if found is None:
        return None
    kept = json.loads(found)
    said = None if kept["said"] is None else show_exchange(load_exchange(kept["said"]))
    return Result(is_example=kept["is_example"], problem=kept["problem"], said=said)
