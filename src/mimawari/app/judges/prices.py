"""Runs the prices watch on the simulated market in virtual time and judges it by the truth."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from statistics import median
from typing import Any

from sqlalchemy import func, select

from mimawari.app.judges.virtual_run import START, Progress, list_seen, open_ground, pick_examples
from mimawari.columns.stamps import write_stamp
from mimawari.kernel.clock import VirtualClock
from mimawari.settings import Settings
from mimawari.sim.sites.mercari.market import Wanted
from mimawari.sim.sites.mercari.sales import Sale, Sales
from mimawari.sim.sites.mercari.site import MarketSite
from mimawari.sim.world import World
from mimawari.store.sql import SqlStore
from mimawari.watches.prices import market, products, rules, watch
from mimawari.watches.prices.market import Market
from mimawari.watches.prices.models import SellingStatus, Setting
from mimawari.watches.prices.tables import products as named
from mimawari.watches.prices.tables import results, runs

ADDRESS = "http://market.test"
STEP = timedelta(hours=1)
LOOK_BACK = timedelta(days=60)
"""No sale on the market's pages is older than this before the first look."""

SETTINGS = (
    Setting(keyword="幽霊部長"),
    Setting(keyword="星くず郵便 アクリルスタンド", min_price=1400),
    Setting(keyword="ラグナブルー", exclusions=("トレカ",)),
    Setting(keyword="ヴェルティナ プライズフィギュア", min_price=3000, max_price=5000),
    Setting(keyword="蒼穹鉄道", category_id=5110),
    Setting(keyword="小さな魔王", category_id=5120, exclusions=("缶バッジ", "アクリルスタンド")),
    Setting(keyword="蒼穹鉄道 缶バッジ", max_price=700),
    Setting(keyword="星くず郵便 Tシャツ", min_price=2000, exclusions=("ルカ",)),
    Setting(keyword="ヴェルティナ Tシャツ"),
    Setting(keyword="ねむり猫の魔法帳 トレカ SR"),
    Setting(keyword="ビリリカ クリアファイル", max_price=500),
    Setting(keyword="ミルキィ亭", min_price=1000, max_price=3000),
    Setting(keyword="星くず郵便 設定資料集"),
    Setting(keyword="ガラクタ王国", max_price=1000),
    Setting(keyword="月影奇譚", min_price=2000, exclusions=("缶バッジ",)),
    Setting(keyword="ビリリカ 1/7スケール", min_price=8000),
    Setting(keyword="ダンジョン測量部 缶バッジ"),
    Setting(keyword="ハルマッタン号"),
    Setting(keyword="ダンジョン測量部 トレカ"),
    Setting(keyword="ねむり猫の魔法帳", category_id=5141, min_price=5000),
)
"""What is searched for, different in kind and roughly the liveliest first; no two share an item."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A sale as the watch keeps it."""

    keyword: str
    item_id: str
    price_yen: int
    sold_out_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a watch says was sold, and what the site says it was asked."""

    seed: int
    days: float
    settings: Sequence[Setting]
    requests: Sequence[Mapping[str, Any]]
    until: datetime
    zone: tzinfo
    crawls: int
    stored: Sequence[Stored]
    markets: Mapping[str, Market]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not as the truth: what, of which sale or day, and both sides of it."""

    what: str
    keyword: str
    about: str
    ours: str | None
    truth: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the watch did."""

    ok: bool
    seed: int
    days: float
    products: int
    requests: int
    crawls: int
    sales_seen: int
    """Items that were sold when they were last seen, on a page of a search or their own."""
    sales_taken_back: int
    """How often something seen to be sold was no sale any more later, and so is not wanted here."""
    sales_true: int
    """Purchases while the market was watched, of items that are searched for."""
    share_seen: float
    """How many of those were seen, by somebody, before they were taken back."""
    missing: int
    """Sales that were seen and are not stored."""
    extra: int
    """Sales that are stored and were not seen, or are stored twice."""
    wrong_price: int
    wrong_day: int
    """Sales whose `sold_out_at` is not the last update that the item's own page told.

    One whose own page was gone by then is to have the day of the crawl that saw it. None may be
    without a date: the queue was worked off before the watch was judged.
    """
    exact_moment: float
    """The share of the sales seen whose `sold_out_at` is the very moment of the purchase."""
    same_day: float
    """The share of the sales seen whose `sold_out_at` is on the day of the purchase."""
    medians_compared: int
    medians_differing: int
    """Days of a product whose median, or number of sales within the bounds, is not the truth's."""
    examples: list[Difference]


async def check_prices(seed: int, days: float, count: int, progress: Progress) -> Report:
    """Watch so many products, the quietest, for some days, and compare with what is really so."""
    evidence = await watch_prices(seed, days, SETTINGS[-count:], progress)
    return judge(evidence, look_again(evidence))


async def watch_prices(
    seed: int, days: float, settings: Sequence[Setting], progress: Progress
) -> Evidence:
    """Watch products until all that was asked for is done, and gather what there is to judge."""
    clock = VirtualClock(START)
    world = World(clock, (MarketSite(clock, seed),), seed)
    given = {"mercari_api_url": ADDRESS, "mercari_url": ADDRESS}
    async with open_ground(world, clock, watch, given) as ground:
        async with ground.store.edit() as tx:
            for one in settings:
                await products.add_product(tx, one.keyword, one, ground.settings, clock.now())
        async for _ in ground.pass_days(timedelta(days=days), STEP, progress):
            pass
        until = clock.now()
        await ground.rounds.settle()
        zone = ground.settings.zone
        return Evidence(
            seed=seed,
            days=days,
            settings=settings,
            requests=[*list_seen(world, part="market")],
            until=until,
            zone=zone,
            crawls=await count_crawls(ground.store),
            stored=await list_stored(ground.store),
            markets=await find_markets(ground.store, START, clock.now(), ground.settings),
        )


async def count_crawls(store: SqlStore) -> int:
    """Count the crawls that were kept."""
    async with store.read() as reader:
        counted: int = (await reader.execute(select(func.count()).select_from(runs))).scalar_one()
        return counted


async def list_stored(store: SqlStore) -> list[Stored]:
    """List the sales that are kept."""
    sold = results.c.selling_status == int(SellingStatus.SOLD_OUT)
    query = select(results, named.c.name.label("keyword")).join(named).where(sold)
    async with store.read() as reader:
        rows = await reader.execute(query.order_by(results.c.id))
    return [
        Stored(
            keyword=row.keyword,
            item_id=row.external_id,
            price_yen=row.price,
            sold_out_at=row.sold_out_at,
        )
        for row in rows
    ]


async def find_markets(
    store: SqlStore, since: datetime, now: datetime, settings: Settings
) -> dict[str, Market]:
    """Ask for the figures of every product, from long before the first look on."""
    days = (now - since + LOOK_BACK).days
    async with store.read() as reader:
        found = await products.list_products(reader, len(SETTINGS))
        return {
            one.setting.keyword: await market.find_market(reader, one.id, days, now, settings)
            for one in found
        }


def make_wanted(setting: Setting) -> Wanted:
    """Say what is searched for in the market's own words."""
    category_id = setting.category_id
    return Wanted(
        keyword=setting.keyword,
        exclude=" ".join(setting.exclusions),
        least_yen=setting.min_price,
        most_yen=setting.max_price,
        categories=frozenset() if category_id is None else frozenset({category_id}),
        conditions=frozenset(setting.item_conditions),
    )


def look_again(evidence: Evidence) -> Sales:
    """Make every look at the market again, by its truth."""
    wanted = [make_wanted(one) for one in evidence.settings]
    return Sales(evidence.seed, wanted, evidence.requests, evidence.until)


def judge(evidence: Evidence, sales: Sales) -> Report:
    """Compare what the watch says was sold, for how much and when, with what it could have seen."""
    seen = sales.list_seen()
    medians = compare_medians(evidence, seen)
    differing = [*compare_sales(evidence.stored, seen), *filter(None, medians)]
    counts = Counter(one.what for one in differing)
    days = [_days(one, evidence.zone) for one in seen]
    return Report(
        ok=bool(seen) and not differing,
        seed=evidence.seed,
        days=evidence.days,
        products=len(evidence.settings),
        requests=len(evidence.requests),
        crawls=evidence.crawls,
        sales_seen=len(seen),
        sales_taken_back=sales.taken_back,
        sales_true=sales.true,
        share_seen=_share(sales.true_seen, sales.true),
        missing=counts["missing"],
        extra=counts["extra"],
        wrong_price=counts["price"],
        wrong_day=counts["day"],
        exact_moment=_share(sum(one.sold_at == one.bought_at for one in seen), len(seen)),
        same_day=_share(sum(ours == true for ours, true in days), len(seen)),
        medians_compared=len(medians),
        medians_differing=counts["median"],
        examples=pick_examples(differing),
    )


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def compare_sales(stored: Sequence[Stored], seen: Sequence[Sale]) -> Iterator[Difference]:
    """Tell which sales are missing, made up, twice there, of another price or of another day."""
    truth = {(one.keyword, one.item_id): one for one in seen}
    kept: set[tuple[str, str]] = set()
    for ours in stored:
        key = (ours.keyword, ours.item_id)
        sale = None if key in kept else truth.get(key)
        kept.add(key)
        if sale is None:
            yield _differ("extra", key, ours.price_yen, None)
            continue
        if ours.price_yen != sale.price_yen:
            yield _differ("price", key, ours.price_yen, sale.price_yen)
        if ours.sold_out_at is None or ours.sold_out_at != _write_sold(sale):
            yield _differ("day", key, ours.sold_out_at, _write_sold(sale))
    for key in truth.keys() - kept:
        yield _differ("missing", key, None, truth[key].price_yen)


def _differ(what: str, key: tuple[str, str], ours: object, truth: object) -> Difference:
    sides = [None if side is None else str(side) for side in (ours, truth)]
    return Difference(what=what, keyword=key[0], about=key[1], ours=sides[0], truth=sides[1])


def _write_sold(sale: Sale) -> str | None:
    """Write when something was sold, as precisely as the site told it."""
    if sale.sold_at is None:
        return None
    return write_stamp(sale.sold_at)[:10] if sale.is_rough else write_stamp(sale.sold_at)


def _days(sale: Sale, zone: tzinfo) -> tuple[date | None, date]:
    """Tell the local days of a sale: the one told, and that of the purchase."""
    text = _write_sold(sale)
    told = rules.parse_sold_out_at(text).astimezone(zone).date() if text else None
    return told, sale.bought_at.astimezone(zone).date()


def compare_medians(evidence: Evidence, seen: Sequence[Sale]) -> list[Difference | None]:
    """Compare each day's median of each product; None stands for one that is as the truth."""
    prices: dict[tuple[str, date], list[int]] = {}
    for sale in seen:
        on, _ = _days(sale, evidence.zone)
        if on is not None:
            prices.setdefault((sale.keyword, on), []).append(sale.price_yen)
    ours = {
        (keyword, day.on): None
        if day.figures is None
        else (day.figures.median_yen, day.figures.count)
        for keyword, found in evidence.markets.items()
        for day in found.days
    }
    compared: list[Difference | None] = []
    for key in sorted(ours.keys() | prices.keys()):
        truth = _middle(prices.get(key, ()), evidence.markets[key[0]])
        is_same = key in ours and key in prices and ours[key] == truth
        about = (key[0], key[1].isoformat())
        compared.append(None if is_same else _differ("median", about, ours.get(key), truth))
    return compared


def _middle(prices: Iterable[int], found: Market) -> tuple[float, int] | None:
    """Tell the median and the number of the prices within the bounds that an answer tells."""
    least, most = found.bounds.least_yen or 0, found.bounds.most_yen or float("inf")
    counting = [price for price in prices if least <= price <= most]
    return (median(counting), len(counting)) if counting else None
