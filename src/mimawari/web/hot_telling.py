"""What several pages of the hot watch tell: alerts, coverage, and when an IP is crawled next."""

from collections.abc import Sequence
from typing import Any

from mimawari.edges import pagination
from mimawari.edges.pagination import Listing
from mimawari.kernel.why import Why, why
from mimawari.watches.hot import franchises, queries
from mimawari.watches.hot.models import AlertKind, Ip
from mimawari.web.visit import Visit
from mimawari.web.words import Words

SHOWN_ALERTS = 10
ALERTS = {
    AlertKind.HIGH_OUTFLOW: "hot.alert_high_outflow",
    AlertKind.LOW_LIQUIDITY: "hot.alert_low_liquidity",
    AlertKind.SURGE: "hot.alert_surge",
    AlertKind.PRICE_DROP: "hot.alert_price_drop",
}


def tell_alert(words: Words, row: Any) -> str:
    """Say an alert in a sentence."""
    kind = AlertKind(row.kind)
    form = {AlertKind.HIGH_OUTFLOW: ",.0f", AlertKind.PRICE_DROP: ".0%"}.get(kind, ".2f")
    return words(
        ALERTS[kind], value=f"{row.value:{form}}", bar=f"{row.threshold:{form}}", n=row.samples
    )


def explain(words: Words, ip: Ip) -> list[str]:
    """Say what keeps an IP's figures from being the whole truth."""
    seen, said = ip.coverage, []
    if ip.baseline_at is None:
        said.append(words("hot.note_baseline"))
    if seen.capped_on_sale:
        said.append(words("hot.note_capped_on_sale"))
    if seen.capped_sold:
        said.append(words("hot.note_capped_sold"))
    if seen.pages_read < seen.pages_asked:
        missing = seen.pages_asked - seen.pages_read
        said.append(words("hot.note_missing", n=missing, of=seen.pages_asked))
    return said


async def list_alerts(
    visit: Visit, ip_id: int | None = None
) -> tuple[list[tuple[Any, str]], int | None]:
    """List a page of the open alerts, each with its sentence, and where the next one begins."""

    async def fetch(before: int | None, most: int) -> Sequence[Any]:
        async with visit.system.store.read() as reader:
            return await queries.list_alerts(reader, most, before=before, ip_id=ip_id, is_open=True)

    start = visit.number("alerts", 0) or None
    listing = Listing(fetch=fetch, start=start, place_of=lambda row: int(row.id))
    rows, more = await pagination.find_page(listing, SHOWN_ALERTS)
    return [(row, tell_alert(visit.words, row)) for row in rows], rows[-1].id if more else None


async def find_next(visit: Visit, ip_id: int) -> Why | None:
    """Tell when an IP is crawled next, and why then; None if it is not by itself."""
    system = visit.system
    return await why(system.store, system.clock, system.watches, franchises.member_of(ip_id))
