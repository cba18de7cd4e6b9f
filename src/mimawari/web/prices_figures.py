"""Charts of a product: medians day by day with their middle half, each sale, the cheapest now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from markupsafe import Markup

from mimawari.watches.prices.figures import DaysToSell
from mimawari.watches.prices.market import DAY, Market
from mimawari.web import draw
from mimawari.web.draw import Point, Series
from mimawari.web.visit import Visit, write_yen


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How many sold so soon and not sooner, and what share of all that is."""

    label: str
    count: int
    percent: float
    bar: Markup


def list_days(there: Market) -> list[date]:
    """List every day of a market, also those on which nothing was sold."""
    count = (there.until_on - there.since_on).days + 1
    return [there.since_on + DAY * place for place in range(count)]


def draw_spark(visit: Visit, there: Market) -> Markup:
    """Draw the medians of all days as small bars; a day without sales has none."""
    known = {day.on: day.figures.median_yen for day in there.days if day.figures}
    days = list_days(there)
    label = visit.words("prices.spark", days=len(days), n=len(known))
    return draw.sparkline([known.get(on) for on in days], label)


def draw_market(visit: Visit, there: Market, sales: Sequence[tuple[datetime, int]]) -> Markup:
    """Draw what was sold day by day, and the cheapest on sale as it is now."""
    zone, words = visit.system.settings.zone, visit.words

    def start_of(on: date) -> datetime:
        return datetime.combine(on, time(), zone)

    def points(name: str) -> list[Point]:
        known = {day.on: getattr(day.figures, name) for day in there.days if day.figures}
        return [(start_of(on), known.get(on)) for on in list_days(there)]

    series = [
        Series(label=words("prices.middle"), points=points("p75_yen"), kind="band",
               low=points("p25_yen"), lasts=DAY),
        Series(label=words("prices.sale"), points=sales, kind="dots", colour=2),
        Series(label=words("prices.median"), points=points("median_yen"), lasts=DAY),
    ]  # fmt: skip
    if there.cheapest is not None:
        level = [(start_of(there.until_on), float(there.cheapest.price))]
        label = words("prices.cheapest_now", price=write_yen(there.cheapest.price))
        series.append(Series(label=label, points=level, kind="level", colour=3))
    frame = draw.make_frame(series, start_of(there.since_on), start_of(there.until_on + DAY))
    title = words("prices.chart")
    return draw.chart(
        title, series, frame, write_yen, lambda at: at.astimezone(zone).strftime("%m-%d")
    )


def list_steps(visit: Visit, found: DaysToSell | None) -> list[Step]:
    """List how soon things sold, with bars that compare."""
    if found is None:
        return []
    most = max(step.count for step in found.steps)
    steps, last = [], ""
    for step in found.steps:
        if step.within_hours is None:
            label = visit.words("prices.later", span=last)
        else:
            last = visit.span(timedelta(hours=step.within_hours))
            label = visit.words("prices.within", span=last)
        percent = 100 * step.count / found.count
        bar = draw.gauge(step.count, most, label)
        steps.append(Step(label=label, count=step.count, percent=percent, bar=bar))
    return steps
