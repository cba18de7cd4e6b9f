"""Commands on monitors: list, show, follow and stop them."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from mimawari import show
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput
from mimawari.kernel.waiting import LOOK
from mimawari.kernel.why import Why
from mimawari.watches.streams import actions, queries
from mimawari.watches.streams.cli.cells import (
    UNRUN,
    MonitorId,
    ago,
    cut_ids,
    find_id,
    find_why,
    is_at_work,
    short_url,
    soon,
    spinner,
    word,
)
from mimawari.watches.streams.cli.events import event_columns
from mimawari.watches.streams.models import ACTIVE, Config, Status, StreamStatus
from mimawari.watches.streams.queries import Sending, View
from mimawari.watches.streams.rules import due_at
from mimawari.watches.streams.schemas.responses import EventOut, MonitorOut, StoppedOut
from mimawari.watches.streams.state import write_config

SHOWN_EVENTS = 8
EMPTY = "No monitors yet. `mimawari streams add URL --callback URL` adds one."
Row = tuple[View, Why | None]


def list_monitors(
    context: typer.Context,
    status: Annotated[Status | None, typer.Option(help="Only those that stand so.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List monitors, newest first: how they and their streams stand, what is next and why."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            views, total = await queries.list_views(reader, status, limit, 0)
        rows = [(one, await find_why(opened, one.monitor.id, one.monitor.status)) for one in views]
        if json:
            show.console.print_json(show.as_json([_plain(opened, *row) for row in rows]))
            return
        empty = EMPTY if status is None else f"No monitor is {status}."
        show.table(rows, _columns(opened, rows), empty=empty)
        if total > len(rows):
            show.say(f"{len(rows)} of {total:,} are shown; --limit shows more.")
        if any(one.monitor.status in ACTIVE for one in views) and not await is_at_work(opened):
            show.say(f"Nothing is looked at: {UNRUN}.")

    run(context, work)


def _columns(opened: System, rows: Sequence[Row]) -> dict[str, Any]:
    ids = cut_ids([view.monitor.id for view, _ in rows])
    now = opened.clock.now()
    return {
        "id": lambda row: ids[row[0].monitor.id],
        "stream": lambda row: _stream(row[0]),
        "state": lambda row: f"{word(row[0].monitor.status)}\n{word(row[0].stream_status)}",
        "picture\nsound": lambda row: f"{word(row[0].video)}\n{word(row[0].audio)}",
        "segments\nchecked": lambda row: f"{row[0].segments:,}\n{ago(row[0].last_check_at, now)}",
        "next": lambda row: _next(opened, *row),
    }


def _stream(view: View) -> str:
    address = show.cell(short_url(view.monitor.stream_url), most=40)
    return f"{show.cell(view.title, most=24)}\n{address}" if view.title else address


def _next(opened: System, view: View, waits: Why | None) -> str:
    if waits is None:
        return f"never:\n{show.cell(view.reason, most=60)}"
    at = soon(waits.next_at, opened.clock.now())
    return f"{at}:\n{show.cell(waits.reason, most=60)}"


def _plain(opened: System, view: View, waits: Why | None) -> dict[str, Any]:
    shown = MonitorOut.of(view, opened.settings.zone).model_dump()
    return {**shown, "title": view.title, "reason": view.reason, "next": waits}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    """All that is shown of one monitor."""

    view: View
    waits: Why | None
    events: Sequence[Sending]
    has_runner: bool


async def _find(opened: System, monitor_id: str) -> _Whole:
    view = await actions.find(opened, monitor_id)
    async with opened.store.read() as reader:
        events, _ = await queries.list_events(reader, monitor_id, SHOWN_EVENTS, 0)
    return _Whole(
        view=view,
        waits=await find_why(opened, monitor_id, view.monitor.status),
        events=events,
        has_runner=await is_at_work(opened),
    )


def show_monitor(
    context: typer.Context,
    monitor_id: MonitorId,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", help="Show it anew each second until it is over.")
    ] = False,
    json: Json = False,
) -> None:
    """Show one monitor whole: how it stands, what is next and why, open alerts, last events."""

    async def work(opened: System) -> None:
        if follow and json:
            raise BadInput("--follow is for people; programs ask with --json again and again")
        async with opened.store.read() as reader:
            found = await find_id(reader, monitor_id)
        if follow:
            await _follow(opened, found)
            return
        whole = await _find(opened, found)
        if json:
            show.console.print_json(show.as_json(_write(opened, whole)))
            return
        show.facts(_facts(opened, whole))
        show.table(whole.events, event_columns(opened), empty="Nothing was told yet.")

    run(context, work)


async def _follow(opened: System, monitor_id: str) -> None:
    """Show a monitor again and again, until it is over or somebody has seen enough."""
    whole = await _find(opened, monitor_id)
    drawn = Live(_draw(opened, whole), console=show.console, auto_refresh=False)
    # Ctrl-C ends the showing, and nothing else.
    with drawn, suppress(asyncio.CancelledError):
        while whole.view.monitor.status in ACTIVE:
            await opened.clock.sleep(LOOK)
            whole = await _find(opened, monitor_id)
            drawn.update(_draw(opened, whole), refresh=True)


def _draw(opened: System, whole: _Whole) -> RenderableType:
    lines = [Text.from_markup(line) for line in show.lay_facts(_facts(opened, whole))]
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    if not whole.events:
        return Group(*lines, Text("Nothing was told yet."))
    return Group(*lines, Text(), show.lay_table(whole.events, event_columns(opened)))


def _write(opened: System, whole: _Whole) -> Mapping[str, Any]:
    monitor, zone = whole.view.monitor, opened.settings.zone
    return {
        **_plain(opened, whole.view, whole.waits),
        "callback_url": monitor.callback_url,
        "config": write_config(monitor.config),
        "metadata": monitor.metadata,
        "alerts": [asdict(one) for one in whole.view.alerts],
        "events": [EventOut.of(one, zone).model_dump() for one in whole.events],
    }


def _facts(opened: System, whole: _Whole) -> dict[str, str]:
    view, now, zone = whole.view, opened.clock.now(), opened.settings.zone
    monitor = view.monitor
    facts = {
        "id": monitor.id,
        "stream": show.cell(monitor.stream_url, most=600),
        "title": show.cell(view.title, most=200),
        "tells": show.cell(monitor.callback_url, most=600),
        "status": f"{word(monitor.status)}, the stream is {word(view.stream_status)}",
        "picture": word(view.video),
        "sound": word(view.audio),
        "counted": f"segments {view.segments:,}, black-outs {view.blackouts},"
        f" silences {view.silences}",
        "last check": show.when(view.last_check_at, now, zone),
        "watched for": _thresholds(monitor.config),
        "added": show.when(monitor.created_at, now, zone),
    }
    due = due_at(monitor.config, view.release_at)
    if due is not None and view.stream_status in {StreamStatus.UNKNOWN, StreamStatus.UPCOMING}:
        facts["announced for"] = show.when(due, now, zone)
    for alert in view.alerts:
        facts[f"open: {alert.what}"] = f"[red]since[/] {show.when(alert.since, now, zone)}"
    return facts | _next_facts(opened, whole)


def _next_facts(opened: System, whole: _Whole) -> dict[str, str]:
    view, waits = whole.view, whole.waits
    now, zone = opened.clock.now(), opened.settings.zone
    if waits is None:
        ended = show.when(view.ended_at, now, zone)
        return {"over": ended, "because": show.cell(view.reason, most=500)}
    at = show.when(waits.next_at, now, zone) if waits.next_at else "now"
    facts = {"next look": f"{at}: {show.cell(waits.reason, most=500)}"}
    if waits.blocked_by:
        facts["blocked by"] = show.cell(waits.blocked_by)
    if not whole.has_runner:
        facts["but"] = f"[yellow]{UNRUN}[/]"
    return facts


def _thresholds(config: Config) -> str:
    told = {
        "black": config.blackout_threshold_sec,
        "silence": config.silence_threshold_sec,
        "a still picture": config.freeze_threshold_sec,
        "bars": config.bars_threshold_sec,
        "loudness": config.loudness_threshold_sec,
    }
    found = [f"{name} {seconds} s" for name, seconds in told.items() if seconds is not None]
    return f"{', '.join(found)}; every {config.check_interval_sec} s, {config.quality} quality"


def stop(context: typer.Context, monitor_id: MonitorId, json: Json = False) -> None:
    """Stop a monitor, and wait until nothing of it runs any more."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await find_id(reader, monitor_id)
        was = (await actions.find(opened, found)).monitor.status
        with spinner("Waiting for its last check to end…"):
            view = await actions.stop(opened, found)
        if json:
            stopped = StoppedOut.of(view, opened.settings.zone)
            show.console.print_json(show.as_json(stopped.model_dump()))
            return
        if was in ACTIVE and view.monitor.status is Status.STOPPED:
            show.say(f"{found} is stopped; it tells nothing any more.")
            return
        since = show.when(view.ended_at, opened.clock.now(), opened.settings.zone)
        show.say(f"{found} was over already: {view.monitor.status} at {since}.")

    run(context, work)
