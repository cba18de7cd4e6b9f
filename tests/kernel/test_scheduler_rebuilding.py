"""An empty schedule is rebuilt from the targets, with what is new or overdue spread out."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.loop import LONGEST
from mimawari.kernel.ports import Reader
from mimawari.kernel.scheduler import Scheduler, spread
from mimawari.kernel.values import Entry
from mimawari.kernel.watch import Target, Watch, Watches
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore
from tests.kernel.rounds import running
from tests.kernel.scheduling import HOUR, doing, entry, until_in


def watching(targets: Sequence[Target]) -> tuple[Watches, list[Reader]]:
    """Return a watch with these targets, and the readers they were asked with."""
    asked: list[Reader] = []

    async def list_targets(reader: Reader, _settings: Settings) -> Sequence[Target]:
        asked.append(reader)
        return targets

    return Watches([Watch(name="w", tasks=(doing("quick"),), targets=list_targets)]), asked


async def test_an_empty_schedule_is_rebuilt_from_the_watches_targets(
    store: SqlStore, clock: VirtualClock
) -> None:
    now = clock.now()
    ran = now - timedelta(minutes=20)
    watches, asked = watching(
        [
            Target(member="new", kind="quick", every=HOUR, args={"x": 1}),
            Target(member="known", kind="quick", every=HOUR, last_run_at=ran),
            Target(member="overdue", kind="quick", every=HOUR, last_run_at=now - 9 * HOUR),
        ]
    )
    await Scheduler(store, clock, watches).tick()
    assert len(asked) == 1
    assert await store.schedule.list(10) == [
        Entry(member="known", kind="quick", next_at=ran + HOUR, every=HOUR, reason="interval"),
        Entry(
            member="new", kind="quick", next_at=now, every=HOUR, args={"x": 1},
            reason="first run, spread out",
        ),
        Entry(
            member="overdue", kind="quick", next_at=now + HOUR / 2, every=HOUR, reason="overdue"
        ),
    ]  # fmt: skip


async def test_a_schedule_that_is_not_empty_is_left_alone(
    store: SqlStore, clock: VirtualClock
) -> None:
    await store.schedule.put([entry("only", clock.now() + 9 * HOUR)])
    watches, asked = watching([Target(member="other", kind="quick", every=HOUR)])
    scheduler = Scheduler(store, clock, watches)
    for _ in range(3):
        await scheduler.tick()
        await clock.advance(HOUR)
    assert asked == []
    assert await store.schedule.count() == 1


@pytest.mark.parametrize("when", ["at the start", "while it runs"])
async def test_a_watch_whose_own_targets_were_lost_gets_them_back_beside_others(
    store: SqlStore, clock: VirtualClock, when: str
) -> None:
    async def list_targets(_reader: Reader, _settings: Settings) -> Sequence[Target]:
        return [
            Target(member="lost", kind="mine", every=HOUR),
            Target(member="other", kind="daily", every=HOUR),
        ]

    async def list_others(_reader: Reader, _settings: Settings) -> Sequence[Target]:
        return [Target(member="theirs", kind="quick", every=HOUR)]

    mine = Watch(name="w", tasks=(doing("mine"), doing("daily")), targets=list_targets)
    others = Watch(name="o", tasks=(doing("quick"),), targets=list_others)
    later = clock.now() + 9 * HOUR
    there = [replace(entry("other", later), kind="daily"), entry("theirs", later)]
    await store.schedule.put(there)
    scheduler = Scheduler(store, clock, Watches([mine, others]))
    if when == "while it runs":
        await scheduler.tick()
        await store.schedule.remove("lost")
        await clock.advance(LONGEST)
    await scheduler.tick()
    assert {each.member for each in await store.schedule.list(9)} == {"lost", "other", "theirs"}
    assert [await store.schedule.find(each.member) for each in there] == there


async def test_run_goes_on_with_a_rebuilt_schedule_without_waiting(
    store: SqlStore, clock: VirtualClock
) -> None:
    watches, _ = watching([Target(member=f"m{n}", kind="quick", every=HOUR) for n in range(4)])
    start = clock.now()
    async with running(Scheduler(store, clock, watches)):
        await until_in(store, "m0")
    assert clock.now() == start


NOW = datetime(2026, 1, 1, tzinfo=UTC)
HALF = timedelta(minutes=30)


@pytest.mark.parametrize(
    ("ages", "expected"),
    [
        ([], []),
        ([None], [timedelta(0)]),
        ([2 * HOUR], [timedelta(0)]),
        ([HOUR], [timedelta(0)]),
        ([HALF], [HALF]),
        ([timedelta(0)], [HOUR]),
        ([None] * 4, [HOUR * n / 4 for n in range(4)]),
        ([None, HALF, 5 * HOUR, timedelta(0)], [timedelta(0), HALF, HALF, HOUR]),
    ],
)
def test_new_and_overdue_targets_are_spread_and_others_keep_their_time(
    ages: list[timedelta | None], expected: list[timedelta]
) -> None:
    targets = [
        Target(member=f"m{n}", kind="t", every=HOUR, last_run_at=None if age is None else NOW - age)
        for n, age in enumerate(ages)
    ]
    placed = spread(targets, NOW)
    assert [each.member for each in placed] == [target.member for target in targets]
    assert [each.next_at - NOW for each in placed] == expected


def test_each_target_is_spread_over_its_own_interval() -> None:
    spans = [HOUR, 6 * HOUR, HOUR, 6 * HOUR]
    targets = [Target(member=f"m{n}", kind="t", every=span) for n, span in enumerate(spans)]
    placed = [each.next_at - NOW for each in spread(targets, NOW)]
    assert placed == [timedelta(0), 6 * HOUR / 4, HOUR / 2, 6 * HOUR * 3 / 4]


class Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    compared: ClassVar[list[int]] = []

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        """Compare and count."""
        self.compared.append(1)
        return super().__eq__(other)


def test_spreading_costs_each_target_the_same_however_many_there_are() -> None:
    targets = [Target(member=Counted(n), kind="t", every=HOUR) for n in range(300)]
    assert len(spread(targets, NOW)) == 300
    assert len(Counted.compared) < 10 * len(targets)
