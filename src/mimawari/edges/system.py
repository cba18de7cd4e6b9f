"""What the edges of a watch are given: the system, opened, and a way to run a command on it."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Protocol, TypeVar, cast

import typer

from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.watch import Watches
from mimawari.settings import Settings

T = TypeVar("T")

Json = Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")]


class System(Protocol):
    """Everything a process needs, opened."""

    @property
    def settings(self) -> Settings:
        """The settings."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock."""
        ...

    @property
    def store(self) -> Store:
        """The store."""
        ...

    @property
    def watches(self) -> Watches:
        """All watches."""
        ...


def run(context: typer.Context, work: Callable[[System], Awaitable[T]]) -> T:
    """Run a command's work on the opened system, with its errors told as sentences."""
    return cast("T", context.obj(work))
