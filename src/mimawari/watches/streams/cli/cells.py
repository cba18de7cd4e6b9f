"""Words and cells that the commands of the streams watch share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.request_job import is_running
from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Reader
from mimawari.kernel.why import Why, why
from mimawari.sites.youtube import watch_url
from mimawari.text import clean, format_duration
from mimawari.watches.streams import queries
from mimawari.watches.streams.models import ACTIVE, Status, StreamStatus
from mimawari.watches.streams.queries import Sending
from mimawari.watches.streams.runner import member_of
from mimawari.watches.streams.sync import FAILED, OK, PENDING, SENT, UNKNOWN
from mimawari.watches.streams.tasks import ROLE

PREFIX = "mon-"
SHORTEST = 12
"""So many digits of an id tell when its monitor was added, and mostly which one it is."""
MATCHES = 5
UNRUN = "no monitor part is running; start one with `mimawari serve`"

MonitorId = Annotated[
    str, typer.Argument(metavar="ID", help="A monitor's id, or enough of its beginning.")
]

_COLOURS = {
    Status.MONITORING: "green",
    Status.WAITING: "yellow",
    Status.INITIALIZING: "yellow",
    Status.ERROR: "red",
    StreamStatus.LIVE: "green",
    StreamStatus.UPCOMING: "yellow",
    OK: "green",
    SENT: "green",
    PENDING: "yellow",
    FAILED: "red",
}
_PLAIN = {UNKNOWN, StreamStatus.ENDED, Status.COMPLETED, Status.STOPPED}


def word(name: str) -> str:
    """Colour a state; a word that nobody knows is something that is wrong."""
    style = _COLOURS.get(name, "" if name in _PLAIN else "red")
    shown = show.cell(name, most=20)
    return f"[{style}]{shown}[/]" if style else shown


def ago(at: datetime | None, now: datetime) -> str:
    """Say briefly how long ago something was."""
    return "–" if at is None else f"{format_duration(now - at)} ago"


def soon(at: datetime | None, now: datetime) -> str:
    """Say briefly in how long something will be."""
    span = format_duration(at - now) if at is not None else "0s"
    return "now" if span == "0s" else f"in {span}"


def clock_time(at: datetime, now: datetime, zone: tzinfo) -> str:
    """Say a time to the second, with its day where that is another one."""
    local = at.astimezone(zone)
    is_today = local.date() == now.astimezone(zone).date()
    return f"{local:{'%H:%M:%S' if is_today else '%m-%d %H:%M:%S'}}"


def short_url(url: str) -> str:
    """Write an address without what is the same for all of them."""
    video = url.removeprefix(watch_url(""))
    return f"v={video}" if video != url else url.removeprefix("https://")


def cut_ids(ids: Sequence[str]) -> dict[str, str]:
    """Cut ids as short as they still differ from each other."""
    bare = {one: one.removeprefix(PREFIX) for one in ids}
    length = SHORTEST
    while len({one[:length] for one in bare.values()}) < len(bare):
        length += 1
    return {one: digits[:length] for one, digits in bare.items()}


async def find_id(reader: Reader, begin: str) -> str:
    """Find the one monitor whose id begins so, with or without what all ids begin with."""
    wanted = clean(begin).strip().lower().removeprefix(PREFIX)
    if not wanted:
        raise BadInput("an id has some digits; `mimawari streams ls` lists monitors")
    found = await queries.list_beginning(reader, f"{PREFIX}{wanted}", MATCHES + 1)
    if len(found) == 1:
        return found[0]
    shown = show.plain(begin)
    if not found:
        raise NotFound(f"no monitor has an id like {shown!r}; `mimawari streams ls` lists them")
    more = ", …" if len(found) > MATCHES else ""
    listed = ", ".join(cut_ids(found[:MATCHES]).values())
    raise BadInput(f"several ids begin with {shown!r}: {listed}{more}; give more of it")


async def find_why(opened: System, monitor_id: str, status: Status) -> Why | None:
    """Find when a monitor looks next and why then; None where it never does."""
    if status not in ACTIVE:
        return None
    return await why(opened.store, opened.clock, opened.watches, member_of(monitor_id))


async def is_at_work(opened: System) -> bool:
    """Say whether some process looks at streams."""
    return await is_running(opened, ROLE)


def facts_of(event: Sending, zone: tzinfo) -> str:
    """Say what matters most of an event."""
    payload = event.payload if isinstance(event.payload, Mapping) else {}
    data = payload.get("data")
    return show.cell("; ".join(_facts(data if isinstance(data, Mapping) else {}, zone)), most=160)


def _facts(data: Mapping[str, Any], zone: tzinfo) -> Iterator[str]:
    if data.get("title"):
        yield str(data["title"])
    if "delay_sec" in data:
        yield f"{data['delay_sec']} s late"
    for name in ("duration_sec", "total_duration_sec"):
        if name in data:
            yield f"{data[name]:g} s since {_local(data.get('started_at'), zone)}"
    if "lufs" in data:
        yield f"{data['lufs']} LUFS"
    if "reason" in data:
        yield str(data["reason"])
    if "error_details" in data:
        yield str(data["error_details"])


def _local(text: Any, zone: tzinfo) -> str:
    try:
        return f"{datetime.fromisoformat(text).astimezone(zone):%H:%M:%S}"
    except (TypeError, ValueError):
        return "–"


def telling(event: Sending) -> str:
    """Say what became of an event's webhook."""
    if event.status == SENT and event.attempts <= 1:
        return word(SENT)
    tries = f"{event.attempts} {'try' if event.attempts == 1 else 'tries'}"
    failed = f": {show.cell(event.last_error, most=120)}" if event.last_error else ""
    return f"{word(event.status)}, {tries}{failed}" if event.attempts or failed else word(PENDING)


@contextmanager
def spinner(sentence: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something is waited for; what is yielded says it anew."""
    if not show.complaints.is_terminal:
        yield lambda _: None
        return
    with show.complaints.status(sentence) as shown:
        yield shown.update
