"""Words and cells that the commands of the hot watch share."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.text import Text

from mimawari import show
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import System
from mimawari.errors import NotFound
from mimawari.kernel.ports import Reader
from mimawari.kernel.why import Why, why
from mimawari.watches.hot import franchises, rules
from mimawari.watches.hot.models import AlertKind, Coverage, Ip

IpId = Annotated[int, typer.Argument(min=1, max=LARGEST_ID, help="The id that `ip ls` shows.")]

LEVELS = {"critical": "bold red", "warning": "yellow", "info": "cyan"}


def folded(text: str, width: int) -> str:
    """Fold a text into a cell so wide, that its table need not make other cells narrower."""
    lines = Text(show.plain(text, most=80)).wrap(show.console, width, overflow="fold")
    return "\n".join(escape(line.plain.rstrip()) for line in lines)


def coverage(seen: Coverage) -> str:
    """Say how much of the market a crawl could see."""
    if not seen.pages_asked:
        return "–"
    pages = f"{seen.pages_read}/{seen.pages_asked} pages"
    return f"{pages}, [yellow]capped[/]" if is_capped(seen) else pages


def is_capped(seen: Coverage) -> bool:
    """Tell whether there was more than the crawl may read."""
    return seen.capped_on_sale or seen.capped_sold


def level(name: str) -> str:
    """Colour a level."""
    return f"[{LEVELS[name]}]{name}[/]" if name in LEVELS else show.cell(name)


def sum_up(values: Sequence[int | None], most: int) -> list[int | None]:
    """Sum neighbours up so that at most so many are left; a gap is left where all are gaps."""
    size = -(-len(values) // most)
    parts = [values[start : start + size] for start in range(0, len(values), size)]
    known = [[value for value in part if value is not None] for part in parts]
    return [sum(part) if part else None for part in known]


def alert_fields(row: Any) -> dict[str, Any]:
    """Tell of an alert what people and programs want to know."""
    return {
        "id": row.id,
        "ip_id": row.ip_id,
        "name": row.name,
        "kind": row.kind,
        "level": row.level,
        "message": rules.describe(AlertKind(row.kind), row.value, row.threshold, row.samples),
        "value": row.value,
        "threshold": row.threshold,
        "samples": row.samples,
        "is_open": row.open_key is not None,
        "opened_at": row.opened_at,
        "closed_at": row.closed_at,
        "acknowledged_at": row.acknowledged_at,
    }


async def find(reader: Reader, ip_id: int) -> Ip:
    """Find an IP that has to be there."""
    ip = await franchises.find_ip(reader, ip_id)
    if ip is None:
        raise NotFound(f"no IP has the id {ip_id}; `mimawari hot ip ls` lists them")
    return ip


async def why_waits(opened: System, ip: Ip) -> Why | None:
    """Say why an IP waits; None if it is not on the schedule."""
    return await why(opened.store, opened.clock, opened.watches, franchises.member_of(ip.id))


def absent(ip: Ip) -> str:
    """Say why an IP is not on the schedule."""
    return "not on the schedule yet" if ip.active else "not active, so never by itself"
