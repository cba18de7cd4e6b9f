"""Whoever tells people dies anywhere: every event is put down once for each, and arrives."""

import asyncio
from datetime import timedelta

from sqlalchemy import select

from mimawari.kernel.clock import RealClock
from mimawari.kernel.telling import tell
from mimawari.notify import targets
from mimawari.notify.models import How, SendState, Setting
from mimawari.notify.tables import events, lines, sends
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from tests.conftest import Databases
from tests.faults.notify_world import tell_people
from tests.faults.world import FULL, PATIENCE_SECONDS, kill, spawn
from tests.notify.catcher import open_catcher
from tests.stores import open_store

EVENTS = 4
DEATHS = range(3, 200, 4) if FULL else (5, 9, 14, 20, 27, 40)
"""Before which statement of its own each process dies."""
LATER = timedelta(minutes=10)
"""Whoever comes after a death comes so much later that nothing of the dead is waited for."""
SPAN = timedelta(minutes=1)


async def test_every_event_is_told_to_everybody_once_whenever_who_tells_it_dies(
    backend: str, databases: Databases
) -> None:
    url = databases.fresh(backend)
    store = open_store(url, RealClock())
    await upgrade(store.database)
    async with open_catcher() as catcher:
        async with store.edit() as tx:
            for name, how in (("fast", How.AT_ONCE), ("slow", How.GROUPED)):
                setting = Setting(url=catcher.url(name), how=how, span=SPAN, kinds=("rooms.fell",))
                await targets.add_target(tx, name, setting, RealClock().now())
            for number in range(EVENTS):
                tell(tx, f"rooms:{number % 2}", "rooms.fell", {"n": number})
        for turn, dies_at in enumerate([*DEATHS, 0, 0]):
            process = spawn(tell_people, url, catcher.port, turn * LATER, dies_at)
            try:
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await asyncio.to_thread(process.join)
            finally:
                kill(process)
            assert process.exitcode in ({0, -9} if dies_at else {0})
        await judge(store, {path for path, _ in catcher.caught})
        # Who dies after sending and before writing that down sends again, and nobody else does.
        assert EVENTS <= len(catcher.bodies("fast")) <= EVENTS + len(DEATHS)
    await store.close()


async def judge(store: SqlStore, reached: set[str]) -> None:
    """Insist that each event is in one message to each target, and that all were sent."""
    async with store.read() as reader:
        told = (await reader.execute(select(events.c.id))).all()
        put = (await reader.execute(select(lines))).all()
        messages = (await reader.execute(select(sends))).all()
    assert len(told) == EVENTS
    assert len({(row.target_id, row.event_id) for row in put}) == len(put) == 2 * EVENTS
    assert {row.send_id for row in put} == {row.id for row in messages}
    assert {row.state for row in messages} == {SendState.SENT}
    assert sum(row.events for row in messages) == 2 * EVENTS
    assert reached == {"/fast", "/slow"}
