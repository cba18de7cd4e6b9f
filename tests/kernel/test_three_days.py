"""Three simulated days of the whole kernel."""

from datetime import timedelta

from sqlalchemy import func, select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.context import Context
from mimawari.kernel.job import Job, State
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Watch, task
from mimawari.store.sql import SqlStore
from mimawari.store.sql.tables import inbox
from tests.kernel.rounds import Rounds

EVERY = timedelta(hours=8)


async def test_three_days_of_rounds_happen_at_their_times(
    store: SqlStore, clock: VirtualClock
) -> None:
    start, ran = clock.now(), []

    @task("round")
    async def go(job: Job, ctx: Context) -> None:
        ran.append((job.target, ctx.clock.now() - start))
        async with ctx.commit(job) as tx:
            tx.emit("all", "seen", {"target": job.target}, destination="test:")
            tx.next_run(ctx.clock.now() + EVERY)

    rounds = Rounds(store, clock, Watch(name="w", tasks=(go,)))
    names = ("a", "b", "c")
    await store.schedule.put(
        [
            Entry(member=name, kind="round", next_at=start + timedelta(hours=n), every=EVERY)
            for n, name in enumerate(names)
        ]
    )
    await rounds.pass_time(timedelta(days=3), step=timedelta(days=1))
    expected = [
        (name, timedelta(hours=n) + EVERY * turn)
        for turn in range(9)
        for n, name in enumerate(names)
    ]
    assert ran == expected
    assert [event.body["target"] for event in rounds.destination.events] == [
        name for name, _ in expected
    ]
    async with store.read() as reader:
        query = select(func.count()).where(inbox.c.state == State.DONE)
        assert (await reader.execute(query)).scalar_one() == len(expected)
