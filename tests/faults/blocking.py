"""A process whose jobs, events and requests stand still when asked to: `python -m` this file.

It runs `serve` as the command does, with a watch of its own. Its arguments are JSON: the roles, and
how patient the guard is.
"""

import asyncio
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter

from mimawari.app.commands.run import run, settings
from mimawari.app.process.guard import Patience, guarding
from mimawari.app.process.restarting import run_again
from mimawari.app.roles import Role
from mimawari.app.serve import serve
from mimawari.edges.routes import SystemOf
from mimawari.ids import new_id
from mimawari.kernel.context import Context
from mimawari.kernel.deliverer import Destination
from mimawari.kernel.job import Job, NewJob
from mimawari.kernel.ports import Clock, Store
from mimawari.kernel.values import Event, NewEvent
from mimawari.kernel.watch import Watch, Watches, task

router = APIRouter(prefix="/api/blocking")
LOG = os.environ.get("BLOCKING_LOG", os.devnull)


def stand_still(how: str) -> None:
    """Never come back, in one of the ways in which code does."""
    match how:
        case "sleep":
            time.sleep(10_000)
        case "open":
            with open(os.environ["BLOCKING_FIFO"], "rb") as opened:  # noqa: PTH123 - as it is done
                opened.read()
        case "regex":
            # One call in C, which holds the interpreter's lock and never gives it back.
            re.fullmatch("(a|a)*b", "a" * 60)
        case "spin":
            while True:
                pass
        case "fine":
            pass


def note(what: str) -> None:
    """Write down that something was done, for the test to count."""
    with open(LOG, "a", encoding="utf-8") as lines:  # noqa: PTH123 - one write, one line
        lines.write(f"{what}\n")


async def _block(job: Job, ctx: Context) -> None:
    stand_still(job.args["how"])
    async with ctx.commit(job) as tx:
        # What a commit brings happens once, however often its job runs.
        tx.emit(job.args["name"], "job", {"name": f"of {job.args['name']}", "how": "fine"},
                destination="blocking:")  # fmt: skip


@task("blocking.job", lease="3s", attempts=3, backoff="1s", concurrency=8)
async def block(job: Job, ctx: Context) -> None:
    """Stand still, or be done."""
    await _block(job, ctx)


@task("blocking.stubborn", lease="1m", attempts=20, backoff="1s", concurrency=8)
async def block_stubbornly(job: Job, ctx: Context) -> None:
    """Stand still, or be done; a kind that is tried often."""
    await _block(job, ctx)


@task("blocking.monitor", lease="3s", attempts=3, backoff="1s", concurrency=8, role="monitor")
async def block_monitor(job: Job, ctx: Context) -> None:
    """Stand still, or be done, where monitors run."""
    await _block(job, ctx)


class Blocking:
    """A destination that stands still over some events."""

    async def deliver(self, event: Event) -> None:
        """Stand still, or be done."""
        stand_still(event.body["how"])
        note(f"event {event.body['name']}")

    async def give_up(self, event: Event, reason: str) -> None:
        """Record what is set aside."""
        note(f"aside {event.body['name']}: {reason}")


def open_destinations(_: Store, __: Clock, ___: Watches) -> Mapping[str, Destination]:
    """Make the destination."""
    return {"blocking": Blocking()}


@router.post("/put")
async def put(system: SystemOf, what: str, names: str) -> dict[str, int]:
    """Put jobs or events that are named after how they end, all at once."""
    pairs = [name.partition(":")[::2] for name in names.split(",")]
    if what != "event":
        kind = f"blocking.{what}"
        await system.store.queue.put(
            [NewJob(kind=kind, args={"name": n, "how": h}) for n, h in pairs]
        )
    else:
        await system.store.outbox.put(
            [
                NewEvent(
                    key=f"lane {n}", kind="blocking", body={"name": n, "how": h},
                    destination="blocking:", id=new_id(),
                )
                for n, h in pairs
            ]
        )  # fmt: skip
    return {"put": len(pairs)}


@router.get("/stand/{how}")
async def stand(how: str) -> dict[str, str]:
    """Stand still in a request."""
    stand_still(how)
    return {"how": how}


@router.get("/compute/{seconds}")
async def compute(seconds: float) -> dict[str, float]:
    """Hold the loop for some seconds of its own CPU time."""
    since = time.thread_time()
    while time.thread_time() - since < seconds:
        pass
    return {"seconds": seconds}


@router.post("/thread")
async def occupy_thread() -> dict[str, str]:
    """Leave a thread of the loop's own behind that never comes back."""
    asyncio.get_running_loop().run_in_executor(None, stand_still, "sleep")
    return {}


watch = Watch(
    name="blocking",
    tasks=(block, block_stubbornly, block_monitor),
    destinations=open_destinations,
    router="tests.faults.blocking:router",
)


def work(given: Mapping[str, Any]) -> None:
    """Serve until stopped."""
    roles = frozenset(map(Role, given["roles"])) if given.get("roles") else frozenset(Role)
    with guarding(Patience(**given.get("patience", {}))) as guard:
        run(serve(settings(), [watch], roles=roles, guard=guard))


if __name__ == "__main__":
    run_again(partial(work, json.loads(sys.argv[1])))
