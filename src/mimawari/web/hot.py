"""The pages of the hot watch: the ranking, open alerts, all IPs, and one more to watch."""

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup
from starlette.responses import Response

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.request_fields import LARGEST_ID, MOST_SEARCHED
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Reader
from mimawari.watches.hot import actions, queries
from mimawari.watches.hot import alerts as alerting
from mimawari.watches.hot.api.boards import RankedOut
from mimawari.watches.hot.cli.cells import sum_up
from mimawari.watches.hot.queries import Board, Ranked, Window
from mimawari.watches.hot.schemas.responses import IpOut, columns_of
from mimawari.watches.hot.sync import HOUR
from mimawari.web import draw, forms, hot_ip, hot_item
from mimawari.web.hot_telling import explain, find_next, list_alerts
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS

SHOWN = 25
SHOWN_IPS = 15
"""Fewer, as of each is told what it waits for."""
BARS = 28
LEAST_DRAWN = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An IP in its place, how it moved, and what it sold hour by hour."""

    place: Ranked
    spark: Markup
    notes: Sequence[str]

    @property
    def movement(self) -> int | None:
        """How many places it went up; None if it had none before."""
        before = self.place.previous_rank
        return None if before is None else before - self.place.rank


async def show_board(visit: Visit) -> Response:
    """Show the ranking and what is worth knowing now, or the ranking as a file."""
    return await _show_board(visit)


async def _show_board(visit: Visit, problem: str = "", status: int = 200) -> Response:
    board = Board(visit.choice("type", *Board))
    hours = int(visit.choice("hours", "24", "1", "168"))
    window = Window.before(visit.system.clock.now(), hours)
    async with visit.system.store.read() as reader:
        if visit.text("format") == "csv":
            ranked = await queries.list_ranked(reader, board, window, MOST_ROWS)
            pieces = csv_export.one_piece([RankedOut.of(one) for one in ranked])
            name = f"leaderboard-{board}-{hours}h"
            return await csv_export.download(name, columns_of(RankedOut), pieces)
        offset = visit.number("offset", 0)
        ranked, total = await queries.find_page(reader, board, window, SHOWN, offset)
        rows = await _make_rows(visit, reader, ranked, window)
        counts = await queries.count_all(reader)
    alerts, following = await list_alerts(visit)
    paged = {"total": total, "limit": SHOWN, "offset": offset}
    form = {"problem": problem, "typed": hot_ip.typed(visit), "bounds": hot_ip.BOUNDS}
    asked_for = {"board": board, "hours": hours, "window": window}
    told = {"rows": rows, "counts": counts, "alerts": alerts, "following": following}
    return visit.page("hot/board.html", status, **paged, **form, **asked_for, **told)


async def _make_rows(
    visit: Visit, reader: Reader, shown: Sequence[Ranked], window: Window
) -> list[Row]:
    count = max((window.end_at - window.start_at) // HOUR, LEAST_DRAWN)
    times = [window.end_at - HOUR * place for place in range(count, 0, -1)]
    sold = await queries.list_sold(reader, [one.ip.id for one in shown], times[0], window.end_at)
    return [_make_row(visit, one, [sold[one.ip.id].get(at) for at in times]) for one in shown]


def _make_row(visit: Visit, one: Ranked, sold: Sequence[int | None]) -> Row:
    total = sum(number or 0 for number in sold)
    label = visit.words("hot.spark", hours=len(sold), n=total)
    spark = draw.sparkline(sum_up(sold, BARS), label)
    return Row(place=one, spark=spark, notes=explain(visit.words, one.ip))


async def add(visit: Visit) -> Response:
    """Watch one more IP; what cannot be taken is told above the form."""
    try:
        added = await actions.add_ip(visit.system, hot_ip.read_ip(visit))
    except BadInput as error:
        return await _show_board(visit, visit.problem(error), 422)
    return visit.go(f"/hot/{added.id}")


async def acknowledge(visit: Visit) -> Response:
    """Keep that somebody has seen an alert."""
    async with visit.system.store.edit() as tx:
        row = await alerting.acknowledge(tx, forms.id_of(visit), visit.system.clock.now())
    if row is None:
        raise NotFound(visit.words("problem.nowhere"))
    return visit.go(f"/hot/{row.ip_id}" if visit.form.get("back") == "ip" else "/hot")


async def show_ips(visit: Visit) -> Response:
    """List all IPs by id, with when each is crawled next and why then."""
    search = visit.text("search")[:MOST_SEARCHED]

    async def fetch(after: int, most: int) -> Sequence[IpOut]:
        async with visit.system.store.read() as reader:
            found = await queries.list_ips(reader, most, after, search=search)
        return [IpOut.of(ip, visit.system.settings) for ip in found]

    start = visit.number("after", 0, LARGEST_ID)
    listing = Listing(fetch=fetch, start=start, place_of=lambda ip: ip.id)
    if visit.text("format") == "csv":
        pieces = pagination.walk(listing, None)
        return await csv_export.download("ips", columns_of(IpOut), pieces)
    found, more = await pagination.find_page(listing, SHOWN_IPS)
    rows = [(ip, await find_next(visit, ip.id)) for ip in found]
    following = found[-1].id if more else None
    return visit.page("hot/ips.html", rows=rows, following=following, search=search)


PAGES = (
    ("/hot", show_board, ("GET",)),
    ("/hot", add, ("POST",)),
    ("/hot/ips", show_ips, ("GET",)),
    ("/hot/alerts/{id:int}/ack", acknowledge, ("POST",)),
    *hot_ip.PAGES,
    *hot_item.PAGES,
)
