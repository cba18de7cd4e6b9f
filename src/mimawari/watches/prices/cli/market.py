"""The command that shows what a product is worth, with a small chart."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import timedelta
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges import csv_export
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput
from mimawari.watches.prices import market, queries
from mimawari.watches.prices.cli.cells import ProductId, yen
from mimawari.watches.prices.figures import DaysToSell, Figures
from mimawari.watches.prices.market import Cheapest, Day, Market

MOST_DAYS = 365
BESIDE_CHART = 25
"""How wide the day, the median and the count beside a line of the chart are."""
NARROWEST, WIDEST = 20, 72
COLUMNS = ("on", "count", "median_yen", "p25_yen", "p75_yen", "min_yen", "max_yen", "outliers")
LINE, BAND, MIDDLE = "·", "━", "◆"


def show_market(
    context: typer.Context,
    product_id: ProductId,
    days: Annotated[int, typer.Option(min=1, max=MOST_DAYS, help="So many days back.")] = 30,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write the days as CSV.")] = False,
) -> None:
    """Show what a product sold for day by day, and the cheapest on sale now."""

    async def work(opened: System) -> None:
        if json and csv:
            raise BadInput("there is one output only; give --json or --csv")
        now = opened.clock.now()
        async with opened.store.read() as reader:
            product = await queries.find_known(reader, product_id)
            there = await market.find_market(reader, product_id, days, now, opened.settings)
        if csv:
            rows = [[_fields(day)[name] for name in COLUMNS] for day in there.days]
            typer.echo(csv_export.write_lines([COLUMNS, *rows]), nl=False)
        elif json:
            show.console.print_json(show.as_json(_plain(there)))
        else:
            show.say(f"{show.plain(product.name)}, {there.since_on} to {there.until_on}")
            _show_chart(there)
            show.facts(_facts(opened, there))

    run(context, work)


def _fields(day: Day) -> dict[str, Any]:
    nothing: dict[str, Any] = dict.fromkeys(COLUMNS)
    figures = asdict(day.figures) if day.figures else {"count": 0}
    return {**nothing, "on": day.on.isoformat(), **figures, "outliers": day.outliers}


def _plain(there: Market) -> dict[str, Any]:
    return {**asdict(there), "days": [_fields(day) for day in there.days]}


def _show_chart(there: Market) -> None:
    """Draw a line for each day: the middle half of the prices, their median and their ends."""
    shown = [day.figures for day in there.days if day.figures]
    if not shown:
        return
    width = max(NARROWEST, min(WIDEST, show.console.width - BESIDE_CHART))
    low, high = min(one.min_yen for one in shown), max(one.max_yen for one in shown)
    for line in _lines(there, low, high, width):
        show.console.print(line, soft_wrap=True, highlight=False)
    ends = f"{low:,}{f'{high:,} yen':>{width - len(f'{low:,}')}}"
    show.say(f"{'':{BESIDE_CHART}}{ends}")
    show.say(f"{'':{BESIDE_CHART}}{LINE} all  {BAND} middle half  {MIDDLE} median")


def _lines(there: Market, low: int, high: int, width: int) -> Iterator[str]:
    """Leave out the days before the first sale and after the last, and none between."""
    by_day = {day.on: day for day in there.days if day.figures}
    on, last = min(by_day), max(by_day)
    while on <= last:
        figures = by_day[on].figures if on in by_day else None
        if figures is None:
            yield f"[dim]{on:%m-%d}        –      0[/]"
        else:
            bar = draw(figures, low, high, width)
            yield f"{on:%m-%d} {figures.median_yen:>10,.0f} {figures.count:>6,}  {bar}"
        on += timedelta(days=1)


def draw(figures: Figures, low: int, high: int, width: int) -> str:
    """Draw one day's prices between the lowest and the highest of all."""

    def place(price: float) -> int:
        return round((price - low) / max(high - low, 1) * (width - 1))

    cells = [" "] * width
    for mark, start, end in (
        (LINE, figures.min_yen, figures.max_yen),
        (BAND, figures.p25_yen, figures.p75_yen),
        (MIDDLE, figures.median_yen, figures.median_yen),
    ):
        for cell in range(place(start), place(end) + 1):
            cells[cell] = mark
    return "".join(cells).rstrip()


def _facts(opened: System, there: Market) -> dict[str, str]:
    sold, cheapest = there.sold, there.cheapest
    facts = {"sold": "nothing seen yet", "on sale": f"{there.on_sale:,}"}
    if sold is not None:
        facts["sold"] = (
            f"{sold.count:,}, median {yen(sold.median_yen)} yen,"
            f" half of them {yen(sold.p25_yen)} to {yen(sold.p75_yen)}"
        )
    if cheapest is not None:
        under = cheapest.percent_under_median
        seen = show.when(cheapest.last_seen_at, opened.clock.now(), opened.settings.zone)
        said = "" if under is None else f", {abs(under):.0f}% {'under' if under >= 0 else 'over'}"
        facts["cheapest"] = f"{yen(cheapest.price)} yen{said}{' the median' * bool(said)}"
        facts[""] = f"{show.cell(cheapest.name)} {show.cell(cheapest.selling_url, most=200)}"
        facts["seen"] = seen
    if there.unseen:
        facts["on sale"] += f", of which {there.unseen:,} were not seen for too long to be sure"
    if there.doubtful is not None:
        facts["doubtful"] = _doubtful(there.doubtful)
    if there.days_to_sell is not None:
        facts["days to sell"] = _days_to_sell(there.days_to_sell)
    facts["left out"] = f"{there.outliers:,} of what was sold: {_rule(there)}"
    return facts


def _doubtful(found: Cheapest) -> str:
    where = f"{show.cell(found.name)} {show.cell(found.selling_url, most=200)}"
    return f"{yen(found.price)} yen, {where}: {found.outlier}"


def _rule(there: Market) -> str:
    bounds = there.bounds
    if bounds.least_yen is None or bounds.most_yen is None:
        return bounds.reason
    return f"{bounds.least_yen:,} to {bounds.most_yen:,} yen count, {bounds.reason}"


def _days_to_sell(found: DaysToSell) -> str:
    steps = show.sparkline([step.count for step in found.steps])
    return (
        f"median {found.median_days:.1f}, half of them {found.p25_days:.1f} to"
        f" {found.p75_days:.1f}  {steps} within 1h 6h 1d 3d 7d 14d 30d, later; {found.count:,} seen"
    )
