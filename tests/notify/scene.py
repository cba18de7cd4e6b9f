"""Notifications in virtual time, sent over real sockets."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import literal, select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.naming import Naming
from mimawari.kernel.rounds import Rounds
from mimawari.kernel.telling import Telling, tell
from mimawari.kernel.watch import Task, Watch, Watches
from mimawari.notify import queries, targets
from mimawari.notify import watch as notify
from mimawari.notify.models import Send, Setting, Target
from mimawari.settings import Settings
from mimawari.store.sql import SqlStore

FELL = Telling(
    kind="rooms.rent_fell",
    ja="値下げ",
    en="rent falls",
    line=lambda facts, language: f"{facts['name']}: {facts['yen']:,}{language}",
    path=lambda facts: f"/rooms/{facts['id']}",
)
GONE = Telling(
    kind="rooms.gone", ja="終了", en="gone", line=lambda facts, _: f"{facts['name']} gone"
)
OTHER = Telling(kind="cars.sold", ja="売約", en="sold", line=lambda facts, _: str(facts["name"]))

FIRST = select(literal(1).label("id"), literal("the attic").label("name"))
ROOMS = Naming(member="rooms:([0-9]+)", names=FIRST)
"""Only the first one has a name."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A store on which something is told, and who is notified of it."""

    store: SqlStore
    clock: VirtualClock
    settings: Settings
    tasks: tuple[Task, ...] = ()

    def watches(self) -> Watches:
        """Make two watches that tell things, and what notifies people."""
        rooms = Watch(name="rooms", tasks=self.tasks, tellings=(FELL, GONE), naming=(ROOMS,))
        return Watches(
            [rooms, Watch(name="cars", tasks=(), tellings=(OTHER,)), notify], self.settings
        )

    def start(self) -> Rounds:
        """Start the parts anew, as a new process does."""
        watches = self.watches()
        opened = watches.open_destinations(self.store, self.clock)
        return Rounds(self.store, self.clock, watches, opened)

    async def add(self, name: str, url: str, **given: Any) -> Target:
        """Add a target."""
        async with self.store.edit() as tx:
            setting = Setting(url=url, **given)
            return await targets.add_target(tx, name, setting, self.clock.now())

    async def change(self, target: Target, **given: Any) -> Target:
        """Change a target."""
        names = Setting.__dataclass_fields__
        said = {**{name: getattr(target.setting, name) for name in names}, **given}
        async with self.store.edit() as tx:
            return await targets.change_target(
                tx, target, target.name, Setting(**said), self.clock.now()
            )

    async def tell(self, *names: str, kind: str = FELL.kind) -> None:
        """Tell something of each name, one after another."""
        for name in names:
            async with self.store.edit() as tx:
                tell(tx, "rooms", kind, {"name": name, "yen": 130_000, "id": 7})

    async def sends(self, target: Target) -> list[Send]:
        """List a target's messages, oldest first."""
        async with self.store.read() as reader:
            return (await queries.list_sends(reader, target.id, 100))[::-1]
