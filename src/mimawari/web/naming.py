"""What people call the targets that programs name by id."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Column, Select, func, select

from mimawari.notify.tables import targets
from mimawari.watches.hot.tables import ips
from mimawari.watches.prices.tables import products
from mimawari.watches.rentals.tables import lists
from mimawari.watches.streams.tables import monitors, states
from mimawari.web.visit import Visit

_STREAMS = monitors.join(states, states.c.monitor_id == monitors.c.id)
_TITLE = func.coalesce(states.c.title, monitors.c.stream_url).label("name")
SOURCES: Sequence[tuple[re.Pattern[str], Column[Any], Select[Any]]] = (
    (re.compile(r"hot:([0-9]{1,9})"), ips.c.id, select(ips.c.id, ips.c.name)),
    (re.compile(r"notify:([0-9]{1,9})"), targets.c.id, select(targets.c.id, targets.c.name)),
    (re.compile(r"prices:([0-9]{1,9})"), products.c.id, select(products.c.id, products.c.name)),
    (
        re.compile(r"rentals:list:([0-9]{1,9})"),
        lists.c.id,
        select(lists.c.id, lists.c.url.label("name")),
    ),
    (
        re.compile(r"streams:(mon-[0-9a-f]+)(?::told)?"),
        monitors.c.id,
        select(monitors.c.id, _TITLE).select_from(_STREAMS),
    ),
)
"""How targets of each watch are named, and where their names stand."""
_JOB_OF_BOOKS = re.compile(r"books:([^:]+)")


async def find_names(visit: Visit, members: Iterable[str]) -> Mapping[str, str]:
    """Find what people call some targets, with a query a watch; one nobody knows is left out."""
    wanted = set(members)
    found = _list_known(visit, wanted)
    async with visit.system.store.read() as reader:
        for pattern, column, query in SOURCES:
            ids = {one: match[1] for one in wanted if (match := pattern.fullmatch(one))}
            if not ids:
                continue
            keys = [int(one) if one.isdecimal() else one for one in set(ids.values())]
            rows = await reader.execute(query.where(column.in_(keys)))
            names = {str(row.id): row.name for row in rows if row.name}
            found |= {one: names[key] for one, key in ids.items() if key in names}
    return found


def _list_known(visit: Visit, wanted: Iterable[str]) -> dict[str, str]:
    """List those that are named without a look: jobs of books, and what is there once."""
    jobs = {one: match[1] for one in wanted if (match := _JOB_OF_BOOKS.fullmatch(one))}
    said = {one: visit.words.maybe("member", one) for one in wanted}
    return jobs | {one: name for one, name in said.items() if name != one}
