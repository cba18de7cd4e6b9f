"""Clears the queue of details: what was read goes to the archive, what failed is forgotten."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select

from mimawari.kernel.job import State
from mimawari.kernel.ports import Store
from mimawari.settings import Settings
from mimawari.watches.rentals.tables import archive, queue

KIND = "rentals.detail"
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleared:
    """How many details were cleared away, or would be."""

    archived: int
    failed: int
    permanent_fail: int


def _due(settings: Settings, now: datetime) -> dict[State, datetime]:
    """Tell from when on what has ended how is cleared away."""
    old = now - settings.rentals_keep_failed
    read = now - settings.rentals_archive_after
    return {State.DONE: read, State.FAILED: old, State.PERMANENT_FAIL: old}


async def count_due(store: Store, settings: Settings, now: datetime) -> Cleared:
    """Count what would be cleared away; change nothing."""
    counts = {}
    async with store.read() as reader:
        for state, before in _due(settings, now).items():
            ended = (queue.c.status == state) & (queue.c.completed_at < before)
            query = select(func.count()).select_from(queue).where(ended)
            counts[state] = int((await reader.execute(query)).scalar_one())
    return Cleared(
        archived=counts[State.DONE],
        failed=counts[State.FAILED],
        permanent_fail=counts[State.PERMANENT_FAIL],
    )


async def clear(store: Store, settings: Settings, now: datetime) -> Cleared:
    """Archive and forget; cut off in the middle, it goes on the next time.

    That a property is gone is written on the property, so forgetting its job loses nothing.
    """
    due = _due(settings, now)
    archived = await _archive(store, due[State.DONE], now)
    await store.queue.purge(State.DONE, due[State.DONE], KIND)
    return Cleared(
        archived=archived,
        failed=await store.queue.purge(State.FAILED, due[State.FAILED], KIND),
        permanent_fail=await store.queue.purge(
            State.PERMANENT_FAIL, due[State.PERMANENT_FAIL], KIND
        ),
    )


async def _archive(store: Store, before: datetime, now: datetime) -> int:
    names = ("id", "property_id", "attempts", "created_at", "completed_at")
    ended = (queue.c.status == State.DONE) & (queue.c.completed_at < before)
    columns = [queue.c[name] for name in names]
    total, after = 0, ""
    while True:
        query = select(*columns).where(ended, queue.c.id > after).order_by(queue.c.id)
        async with store.edit() as tx:
            rows = (await tx.execute(query.limit(BATCH))).all()
            values = [{**dict(zip(names, row, strict=True)), "archived_at": now} for row in rows]
            await tx.save(archive, values, ["archived_at"])
        total += len(rows)
        if len(rows) < BATCH:
            return total
        after = rows[-1].id
