"""Every watch tells people what happens to what it watches, in both languages."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select

from mimawari.kernel.clock import VirtualClock
from mimawari.kernel.telling import DESTINATION
from mimawari.settings import DEFAULTS
from mimawari.store.sql import SqlStore
from mimawari.store.sql.arguments import load
from mimawari.store.sql.tables import outbox
from mimawari.watches import INSTALLED
from mimawari.watches.books.mailing import Mail, MailState
from mimawari.watches.books.notifications import tell_end
from mimawari.watches.hot.models import AlertKind
from mimawari.watches.prices.alerts import AlertKind as PriceAlert
from mimawari.watches.rentals import sync as rentals
from mimawari.watches.rentals.models import Seen, Source

TELLINGS = {one.kind: one for watch in INSTALLED for one in watch.tellings}
URL = "https://realestate.yahoo.co.jp/rent/detail/"


async def told(store: SqlStore) -> list[tuple[str, Mapping[str, Any]]]:
    """List what was told to people, in its order."""
    query = select(outbox.c.kind, outbox.c.body).where(outbox.c.destination == DESTINATION)
    async with store.read() as reader:
        rows = (await reader.execute(query.order_by(outbox.c.id))).all()
    return [(row.kind, load(row.body)[0]) for row in rows]


def lines(found: list[tuple[str, Mapping[str, Any]]], language: str) -> list[str]:
    return [TELLINGS[kind].line(body, language) for kind, body in found]


def seen(number: int, rent: int) -> Seen:
    return Seen(
        property_id=f"p{number}", url=f"{URL}{number}", source=Source.LIST, rent_yen=rent,
        building_name=f"メゾン{number}", layout="1K",
    )  # fmt: skip


def look(at: datetime) -> rentals.Look:
    return rentals.Look(job_id="j", at=at, zone=DEFAULTS.zone)


async def test_rooms_are_told_new_together_and_rents_and_ends_one_by_one(
    store: SqlStore, clock: VirtualClock
) -> None:
    async with store.edit() as tx:
        await rentals.keep_seen(tx, [seen(n, 131_000) for n in range(5)], look(clock.now()))
    async with store.edit() as tx:
        changed = [seen(0, 130_000), seen(1, 132_000), seen(2, 131_000)]
        await rentals.keep_seen(tx, changed, look(clock.now()))
    async with store.edit() as tx:
        await rentals.mark_gone(tx, "p2", f"{URL}2", look(clock.now()))
    found = await told(store)
    assert sorted(kind for kind, _ in found) == [
        "rentals.ended", "rentals.new", "rentals.rent_fell", "rentals.rent_rose"
    ]  # fmt: skip
    by_kind = dict(found)
    assert TELLINGS["rentals.new"].line(by_kind["rentals.new"], "ja") == (
        "新着5件: メゾン0 131,000円 1K、メゾン1 131,000円 1K、メゾン2 131,000円 1K ほか2件"
    )
    fell = TELLINGS["rentals.rent_fell"]
    assert fell.line(by_kind[fell.kind], "ja") == "メゾン0: 家賃 131,000円 → 130,000円"
    assert fell.line(by_kind[fell.kind], "en") == "メゾン0: rent ¥131,000 → ¥130,000"
    assert fell.path(by_kind[fell.kind]) == "/rentals/p0"


@pytest.mark.parametrize(
    ("state", "kinds"),
    [
        (MailState.SENT, ["books.mail_sent"]),
        (MailState.UNCONFIRMED, ["books.mail_sent"]),
        (MailState.FAILED, ["books.mail_failed"]),
        (MailState.PENDING, []),
        (MailState.ENDING, []),
    ],
)
async def test_what_became_of_a_digest_is_told_without_its_recipients(
    store: SqlStore, clock: VirtualClock, state: MailState, kinds: list[str]
) -> None:
    mail = Mail(
        id="m", recipients=("ann@example.org",), language="ja", books=3, state=state,
        reason="550 no", attempts=1, created_at=clock.now(), changed_at=clock.now(),
    )  # fmt: skip
    async with store.edit() as tx:
        tell_end(tx, mail)
    found = await told(store)
    assert [kind for kind, _ in found] == kinds
    assert "ann@example.org" not in str(found)
    assert all("3" in line for language in ("ja", "en") for line in lines(found, language))


@pytest.mark.parametrize("language", ["ja", "en"])
def test_every_alert_of_hot_and_prices_has_words(language: str) -> None:
    for kind in AlertKind:
        body = {"ip_id": 1, "name": "幽霊部長", "kind": kind, "message": "50 items sold"}
        for telling in (TELLINGS["hot.alert_opened"], TELLINGS["hot.alert_closed"]):
            assert telling.line(body, language).startswith("幽霊部長")
            assert telling.path(body) == "/hot/1"
    for price in PriceAlert:
        body = {"product_id": 2, "product": "Switch", "name": "美品", "price": 12800, "kind": price}
        for telling in (TELLINGS["prices.alert_opened"], TELLINGS["prices.alert_closed"]):
            assert "12,800" in telling.line(body, language)
            assert telling.path(body) == "/prices/2"
