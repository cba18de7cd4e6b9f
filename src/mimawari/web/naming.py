"""What people call the targets that programs name by id."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Select, func, select

from mimawari.watches.hot.tables import ips
from mimawari.watches.prices.tables import products
from mimawari.watches.rentals.tables import lists
from mimawari.watches.streams.tables import monitors, states
from mimawari.web.visit import Visit

_STREAMS = monitors.join(states, states.c.monitor_id == monitors.c.id)
_TITLE = func.coalesce(states.c.title, monitors.c.stream_url).label("name")
SOURCES: Sequence[tuple[re.Pattern[str], Column[Any], Select[Any]]] = (
    (re.compile(r"hot:([0-9]{1,9})"), ips.c.id, select(ips.c.id, ips.c.name)),
    (re.compile(r"prices:([0-9]{1,9})"), products.c.id, select(products.c.id, products.c.name)),
    (
        re.compile(r"rentals:list:([0-9]{1,9})"),
        lists.c.id,
        select(lists.c.id, lists.c.url.label("name")),
    ),
    (
        re.compile(r"streams:(mon-[0-9a-f]+)"),
        monitors.c.id,
        select(monitors.c.id, _TITLE).select_from(_STREAMS),
    ),
)
"""How targets of each watch are named, and where their names stand."""


async def find_names(visit: Visit, members: Iterable[str]) -> Mapping[str, str]:
    """Find what people call some targets, with a query a watch; one nobody knows is left out."""
    wanted = set(members)
    found: dict[str, str] = {}
    async with visit.system.store.read() as reader:
        for pattern, column, query in SOURCES:
            ids = {match[1]: one for one in wanted if (match := pattern.fullmatch(one))}
            if not ids:
                continue
            keys = [int(one) if one.isdecimal() else one for one in ids]
            rows = await reader.execute(query.where(column.in_(keys)))
            found |= {ids[str(row.id)]: row.name for row in rows if row.name}
    return found
