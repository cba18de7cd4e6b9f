"""The command that lists what was told, and what became of the telling."""

from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.system import Json, System, run
from mimawari.watches.streams import queries
from mimawari.watches.streams.cli.cells import clock_time, cut_ids, facts_of, find_id, telling
from mimawari.watches.streams.queries import Sending
from mimawari.watches.streams.schemas.responses import EventOut

MonitorOf = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Only those of this monitor.")
]


def list_events(
    context: typer.Context,
    monitor_id: MonitorOf = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List what was told of one monitor or of all, newest first, and how each webhook went."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            wanted = await find_id(reader, monitor_id) if monitor_id is not None else None
            found, total = await queries.list_events(reader, wanted, limit, 0)
        if json:
            zone = opened.settings.zone
            told = [EventOut.of(one, zone).model_dump() for one in found]
            show.console.print_json(show.as_json(told))
            return
        columns = event_columns(opened)
        if wanted is None:
            ids = cut_ids(list({one.monitor_id for one in found}))
            # Below each other, which leaves room for what is said of them.
            name = columns.pop("event")
            named = {"event\nmonitor": lambda one: f"{name(one)}\n{ids[one.monitor_id]}"}
            columns = {"when": columns.pop("when"), **named, **columns}
        show.table(found, columns, empty="Nothing was told yet.")
        if total > len(found):
            show.say(f"{len(found)} of {total:,} are shown; --limit shows more.")

    run(context, work)


def event_columns(opened: System) -> dict[str, Any]:
    """Name what is shown of an event."""
    now, zone = opened.clock.now(), opened.settings.zone

    def at(one: Sending) -> str:
        return clock_time(one.created_at, now, zone)

    return {
        "when": at,
        "event": lambda one: show.cell(one.event_type, most=50),
        "what": lambda one: facts_of(one, zone),
        "webhook": telling,
    }
