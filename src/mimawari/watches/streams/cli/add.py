"""The command that has one more stream monitored."""

import json as jsonlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer
from pydantic import ValidationError

from mimawari import show
from mimawari.edges.request_fields import write_moment
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput
from mimawari.watches.streams import actions
from mimawari.watches.streams.actions import Client
from mimawari.watches.streams.cli.cells import UNRUN, cut_ids, is_at_work
from mimawari.watches.streams.models import Monitor, Quality
from mimawari.watches.streams.schemas.requests import MonitorIn
from mimawari.watches.streams.schemas.responses import AddedOut

CLIENT = Client(name="cli", is_counted=False)
DAY = timedelta(days=1)
OPTIONS = {
    "stream_url": "URL",
    "callback_url": "--callback",
    "metadata": "--metadata",
    "check_interval_sec": "--check-interval",
    "blackout_threshold_sec": "--blackout",
    "silence_threshold_sec": "--silence",
    "silence_db_threshold": "--silence-db",
    "scheduled_start_time": "--start",
    "start_delay_tolerance_sec": "--tolerance",
    "quality": "--quality",
    "freeze_threshold_sec": "--freeze",
    "bars_threshold_sec": "--bars",
    "loudness_threshold_sec": "--loudness",
    "loudness_min_lufs": "--loudness-min",
    "loudness_max_lufs": "--loudness-max",
    "maintenance": "--maintenance",
}
"""How each key of the API is said on the command line."""

Callback = Annotated[str, typer.Option("--callback", help="Where webhooks are sent.")]
Start = Annotated[
    str | None,
    typer.Option(
        "--start", metavar="TIME", help="When it is to begin, like 20:00 or 2026-01-31T20:00."
    ),
]
Windows = Annotated[
    list[str] | None,
    typer.Option("--maintenance", metavar="FROM/TO", help="Tell nothing then; again for more."),
]


def _seconds(option: str, words: str) -> Any:
    return typer.Option(option, metavar="SECONDS", help=words)


def add(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    url: Annotated[str, typer.Argument(metavar="URL", help="The address of one video.")],
    *,
    callback: Callback,
    check_interval: Annotated[int, _seconds("--check-interval", "How often to look.")] = 10,
    blackout: Annotated[int, _seconds("--blackout", "Tell of black for so long.")] = 30,
    silence: Annotated[int, _seconds("--silence", "Tell of silence for so long.")] = 30,
    silence_db: Annotated[
        float, typer.Option("--silence-db", help="What is under this is silent, in dB.")
    ] = -50,
    start: Start = None,
    tolerance: Annotated[int, _seconds("--tolerance", "How late it may begin.")] = 300,
    quality: Annotated[
        Quality, typer.Option("--quality", help="Which variant is looked at.")
    ] = "lowest",
    freeze: Annotated[int | None, _seconds("--freeze", "Tell of a still picture.")] = None,
    bars: Annotated[int | None, _seconds("--bars", "Tell of colour bars.")] = None,
    loudness: Annotated[int | None, _seconds("--loudness", "Tell of a wrong loudness.")] = None,
    loudness_min: Annotated[float, typer.Option(help="The least loudness, in LUFS.")] = -40,
    loudness_max: Annotated[float, typer.Option(help="The greatest, in LUFS.")] = -5,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="Put a small picture into alerts.")
    ] = False,
    mute_is_fine: Annotated[
        bool, typer.Option("--mute-is-fine", help="No sound track at all is not told as silence.")
    ] = False,
    maintenance: Windows = None,
    metadata: Annotated[
        str, typer.Option(metavar="JSON", help="Sent along with every webhook.")
    ] = "{}",
    json: Json = False,
) -> None:
    """Monitor one more stream, from now on."""
    config = {
        "check_interval_sec": check_interval,
        "blackout_threshold_sec": blackout,
        "silence_threshold_sec": silence,
        "silence_db_threshold": silence_db,
        "start_delay_tolerance_sec": tolerance,
        "quality": quality,
        "missing_audio_is_silence": not mute_is_fine,
        "freeze_threshold_sec": freeze,
        "bars_threshold_sec": bars,
        "loudness_threshold_sec": loudness,
        "loudness_min_lufs": loudness_min,
        "loudness_max_lufs": loudness_max,
        "snapshot": snapshot,
    }
    said = _Said(url, callback, config, start, maintenance or [], metadata)
    run(context, lambda opened: _add(opened, said, is_json=json))


@dataclass(frozen=True, slots=True)
class _Said:
    """What was said on the command line."""

    url: str
    callback: str
    config: Mapping[str, Any]
    start: str | None
    maintenance: list[str]
    metadata: str


async def _add(opened: System, said: _Said, *, is_json: bool) -> None:
    now, zone = opened.clock.now(), opened.settings.zone
    monitor = await actions.add(opened, _parse(said, now, zone), CLIENT)
    if is_json:
        show.console.print_json(show.as_json(AddedOut.of(monitor, zone).model_dump()))
        return
    show.facts({"id": monitor.id, "stream": show.cell(monitor.stream_url, most=600)})
    show.say(_next(monitor))
    short = cut_ids([monitor.id])[monitor.id]
    show.say(f"`mimawari streams show {short} --follow` shows how it stands.")
    if not await is_at_work(opened):
        show.say(f"Nothing is looked at yet: {UNRUN}.")


def _next(monitor: Monitor) -> str:
    every = f"once it is live, every {monitor.config.check_interval_sec} s"
    return f"It is asked now whether it is live; {every} all that is new is looked at."


def _parse(said: _Said, now: datetime, zone: ZoneInfo) -> MonitorIn:
    """Check what was said by the rules of the API, and tell what is wrong by its option."""
    config = dict(said.config)
    if said.start is not None:
        config["scheduled_start_time"] = write_moment(parse_time("--start", said.start, now, zone))
    config["maintenance"] = [_window(one, now, zone) for one in said.maintenance]
    whole = {
        "stream_url": said.url,
        "callback_url": said.callback,
        "config": config,
        "metadata": _object(said.metadata),
    }
    try:
        return MonitorIn.model_validate(whole)
    except ValidationError as error:
        first = error.errors()[0]
        names = [str(part) for part in first["loc"] if str(part) in OPTIONS]
        words = first["msg"].removeprefix("Value error, ")
        for key, option in OPTIONS.items():
            words = words.replace(key, option)
        raise BadInput(f"{OPTIONS[names[-1]]}: {words}" if names else words) from error


def parse_time(option: str, text: str, now: datetime, zone: ZoneInfo) -> datetime:
    """Read a time as people write it: today's or tomorrow's hour, or a day with or without zone."""
    advice = f"{option}: write a time like 20:00, 2026-01-31T20:00 or 2026-01-31T20:00:00+09:00"
    try:
        if "-" not in text and len(text) <= len("20:00:00"):
            today = now.astimezone(zone)
            hour = datetime.strptime(text, "%H:%M").time()  # noqa: DTZ007 - its zone comes next
            at = datetime.combine(today.date(), hour, zone)
            return at if at >= today else datetime.combine(today.date() + DAY, hour, zone)
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(advice) from error
    return found if found.tzinfo else found.replace(tzinfo=zone)


def _window(text: str, now: datetime, zone: ZoneInfo) -> dict[str, str]:
    start, slash, end = text.partition("/")
    if not slash:
        raise BadInput("--maintenance: write it like 2026-01-31T03:00/2026-01-31T04:00")
    names = {"from": start, "to": end}
    return {
        name: write_moment(parse_time("--maintenance", one, now, zone))
        for name, one in names.items()
    }


def _object(text: str) -> dict[str, Any]:
    try:
        found = jsonlib.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"--metadata: it is no JSON: {show.plain(str(error), most=100)}") from error
    if not isinstance(found, dict):
        raise BadInput('--metadata: write a JSON object like {"channel": "見回り"}')
    return found
