"""What goes wrong in the demo's world, by the clock, so that there is something to see."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mimawari.app.demo.cast import MINUTE, STARTS_AT
from mimawari.sim.world import World

AGAIN = timedelta(hours=4)
"""After so long all of it happens again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Something that goes wrong some time after the start, and how to tell of it."""

    after: timedelta
    words: str
    order: Mapping[str, Any]


ACTS = (
    Act(
        after=6 * MINUTE,
        words="the rentals site turns us away for forty minutes",
        order={"part": "rentals", "do": "blocked", "for_s": 2400.0},
    ),
    Act(
        after=100 * MINUTE,
        words="the book API answers 503 for five minutes",
        order={"part": "books", "do": "status", "code": 503, "for_s": 300.0},
    ),
)


async def play(world: World, say: Callable[[str], None]) -> None:
    """Give the world its orders, each at its time, over and over."""
    begins_at = STARTS_AT
    while True:
        for act in ACTS:
            await world.clock.sleep(begins_at + act.after - world.clock.now())
            world.orders.add(dict(act.order))
            say(act.words)
        begins_at += AGAIN
