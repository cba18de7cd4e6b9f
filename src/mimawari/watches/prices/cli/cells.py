"""Words and cells that the commands of the prices watch share."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import System
from mimawari.watches.prices.models import Setting
from mimawari.watches.prices.queries import Run

ProductId = Annotated[
    int, typer.Argument(min=1, max=LARGEST_ID, metavar="ID", help="A product's id.")
]


def yen(amount: float | None) -> str:
    """Write an amount without decimals and with its thousands apart."""
    return "–" if amount is None else f"{amount:,.0f}"


def bounds_of(setting: Setting) -> str:
    """Say between which prices is searched."""
    match setting.min_price, setting.max_price:
        case 0, 0:
            return "any"
        case least, 0:
            return f"from {least:,} yen"
        case 0, most:
            return f"up to {most:,} yen"
        case least, most:
            return f"{least:,} to {most:,} yen"


def capped(run: Run) -> str:
    """Say whether there was more than the pages that were asked for."""
    sides = [("on sale", run.capped_on_sale), ("sold", run.capped_sold)]
    more = " and ".join(side for side, is_capped in sides if is_capped)
    return f"more {more}" if more else "all"


def show_crawls(opened: System, runs: Sequence[Run]) -> None:
    """Show crawls, newest first."""
    columns = {
        "crawled": lambda run: show.short(run.crawled_at, opened.settings.zone),
        "pages": lambda run: f"{run.pages_read}/{run.pages_asked}",
        "seen": capped,
        "found": lambda run: f"{run.found:,}",
        "new": lambda run: f"{run.added:,}",
        "taken out": lambda run: f"{run.removed:,}",
        "to look at": lambda run: f"{run.followed_up:,}",
    }
    show.table(runs, columns, empty="Not crawled yet.")


def alert_line(row: Any) -> str:
    """Say what an alert tells."""
    name = show.plain(row.name, most=40)
    kind = row.kind.replace("_", " ")
    doubt = "" if row.doubt is None else f"; doubtful: {row.doubt}"
    return f"{kind}: {name} for {row.price:,} yen; {row.reason}{doubt}"
