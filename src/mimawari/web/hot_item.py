"""The page of an item: its life story, as far as crawls have seen it."""

import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup
from starlette.responses import Response

from mimawari.errors import NotFound
from mimawari.watches.hot import actions, queries
from mimawari.watches.hot.models import Status
from mimawari.web import draw, forms
from mimawari.web.draw import Series
from mimawari.web.visit import Visit, write_yen

MOST_CHANGES = 200
_ID = re.compile("[A-Za-z0-9_-]{1,64}")


async def show(visit: Visit) -> Response:
    """Show an item and what happened to it, oldest first."""
    ip_id, source_id = forms.id_of(visit), visit.request.path_params["item"]
    async with visit.system.store.read() as reader:
        ip = await actions.find_known(reader, ip_id)
        item = None
        if _ID.fullmatch(source_id):
            item = await queries.find_item(reader, ip_id, source_id)
            changes = await queries.list_changes(reader, ip_id, source_id, MOST_CHANGES)
    if item is None:
        raise NotFound(visit.words("hot.no_item"))
    return visit.page(
        "hot/item.html", ip=ip, item=item, changes=changes, prices=_draw_price(visit, item, changes)
    )


def _draw_price(visit: Visit, item: Any, changes: Sequence[Any]) -> Markup | None:
    """Draw what it cost from sighting to sighting, up to its sale or its last one."""
    title = visit.words("hot.price")
    points = [(row.at, row.price_yen) for row in changes]
    end = item.sold_at if item.status == Status.SOLD and item.sold_at else item.last_seen_at
    if item.price_yen is None or not points or end <= points[0][0]:
        return None
    series = [Series(label=title, points=[*points, (end, item.price_yen)])]
    frame = draw.make_frame(series, points[0][0], end)
    return draw.chart(title, series, frame, write_yen, lambda at: visit.when(at, "%m-%d %H:%M"))


PAGES = (("/hot/{id:int}/items/{item}", show, ("GET",)),)
