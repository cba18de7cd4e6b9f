"""Charts of an IP: what came and went hour by hour, what was paid, and which hours are busy."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from markupsafe import Markup

from mimawari.watches.hot.sync import HOUR
from mimawari.web import draw
from mimawari.web.draw import Series
from mimawari.web.visit import Visit, write_yen

HEAT_DAYS = 7
HEAT_LEVELS = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """An hour of a day: how many, and how much that is beside the others; None is not observed."""

    count: int | None
    level: int


def _hourly(
    rows: Sequence[Any], end: datetime, span: int, name: str
) -> list[tuple[datetime, float | None]]:
    """Lay out every hour; one that nobody observed has no value."""
    known = {row.hour_at: getattr(row, name) for row in rows}
    start = end - HOUR * span
    return [(start + HOUR * place, known.get(start + HOUR * place)) for place in range(span)]


def draw_flow(visit: Visit, rows: Sequence[Any], end: datetime, span: int) -> Markup:
    """Draw what came and went in each of the last hours, side by side."""
    series = [
        Series(
            label=visit.words(f"hot.{name}"),
            points=_hourly(rows, end, span, name),
            kind="bars",
            colour=place + 1,
            lasts=HOUR,
            place=(place, 2),
        )
        for place, name in enumerate(("inflow", "outflow"))
    ]
    return _draw(visit, visit.words("hot.flow"), series, end, "{:,.0f}".format)


def draw_medians(visit: Visit, rows: Sequence[Any], end: datetime, span: int) -> Markup:
    """Draw the median of what was newly sold in each of the last hours."""
    points = _hourly(rows, end, span, "median_yen")
    title = visit.words("hot.median")
    series = [Series(label=title, points=points, colour=3, lasts=HOUR)]
    return _draw(visit, title, series, end, write_yen)


def _draw(
    visit: Visit, title: str, series: Sequence[Series], end: datetime, say: draw.Say
) -> Markup:
    frame = draw.make_frame(series, series[0].points[0][0], end)
    return draw.chart(title, series, frame, say, lambda at: visit.when(at, "%m-%d %H:%M"))


def make_heat(visit: Visit, rows: Sequence[Any], name: str) -> list[tuple[date, list[Cell]]]:
    """Lay the hours of the last days side by side, in the visitor's zone, newest day first."""
    counts: dict[tuple[date, int], int] = {}
    for row in rows:
        at = row.hour_at.astimezone(visit.zone)
        # Where clocks go back, an hour of the day comes twice.
        key = at.date(), at.hour
        counts[key] = counts.get(key, 0) + getattr(row, name)
    today = visit.system.clock.now().astimezone(visit.zone).date()
    days = [today - timedelta(days=place) for place in range(HEAT_DAYS)]
    most = max((counts.get((on, hour), 0) for on in days for hour in range(24)), default=0)
    return [(on, [_cell(counts.get((on, hour)), most) for hour in range(24)]) for on in days]


def _cell(count: int | None, most: int) -> Cell:
    return Cell(count, -(-HEAT_LEVELS * count // most) if count and most else 0)
