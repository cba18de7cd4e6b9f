"""Looks after what a process had in hand when its guard ended it, at the start of the next one."""

import asyncio
import re
from pathlib import Path

import structlog

from mimawari.app.process.record import Ended, take_ended
from mimawari.kernel.deliverer import read_delivered
from mimawari.kernel.ports import Store

MOST_STACK = 8000
_DELIVERY = re.compile(r'kernel/deliverer\.py", line [0-9]+ in _deliver\b')
_OTHER = re.compile(
    r'(?:kernel/worker\.py", line [0-9]+ in _attempt|app/requests_in_hand\.py", line [0-9]+ in'
    r" note_request)\b"
)

log = structlog.get_logger(component="serve")


async def look_back(store: Store, folder: Path) -> None:
    """Log what processes had in hand that stood still, and suspect the events among it."""
    for path, ended in await asyncio.to_thread(take_ended, folder):
        if ended.stacks:
            await _examine(store, ended)
        await asyncio.to_thread(path.unlink, missing_ok=True)


async def _examine(store: Store, ended: Ended) -> None:
    stack = ended.main_stack
    log.error(
        "a process stood still and was ended", what=ended.process, result="started again",
        stack=stack[:MOST_STACK],
    )  # fmt: skip
    delivered = [one for note in ended.notes if (one := read_delivered(note)) is not None]
    for note in ended.notes:
        if read_delivered(note) is None:
            log.error("a request was in hand when the process was ended", what=note)
    await store.outbox.settle(delivered)
    for event in await store.outbox.release(ended.id, suspect=is_delivery(stack)):
        log.error(
            "an event was in hand when the process was ended", what=event.kind, id=event.id,
            result=event.standing.name.lower(),
        )  # fmt: skip


def is_delivery(stack: str) -> bool:
    """Tell whether the delivery of an event may be what the loop stood still in.

    Coroutines that wait for each other are all on the stack of the one that runs. Where it shows
    neither a delivery nor a job or a request, a callback ran, whose origin it does not show.
    """
    return bool(_DELIVERY.search(stack)) or not _OTHER.search(stack)
