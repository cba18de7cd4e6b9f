"""Sends once more what has ended, because a person asks for it."""

import structlog

from mimawari.errors import JobError
from mimawari.kernel.deliverer import Resending
from mimawari.kernel.exchange import find_exchange
from mimawari.kernel.ports import Store
from mimawari.kernel.values import Delivery, Event
from mimawari.text import one_line

log = structlog.get_logger(component="resending")


async def resend(store: Store, destination: Resending, event: Event) -> Delivery:
    """Make one more attempt of an ended event, keep how it went, and return that."""
    try:
        said = await destination.resend(event)
    except JobError as error:
        reason = one_line(str(error))
        ended = Delivery(id=event.id, token=0, reason=reason, exchange=find_exchange(error))
    else:
        ended = Delivery(id=event.id, token=0, delivered=True, exchange=said)
    await store.outbox.record(ended)
    log.info(
        "sent once more", what=event.kind, id=event.id, attempt=event.attempt, reason=ended.reason,
        result="done" if ended.delivered else "failed",
    )  # fmt: skip
    return ended
