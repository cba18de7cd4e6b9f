"""Whom the demo watches: a few targets for each watch, added by the watches' own functions."""

from datetime import UTC, datetime, timedelta

from mimawari.edges.system import System
from mimawari.kernel.ports import Tx
from mimawari.notify import targets as notify
from mimawari.notify.incidents import BEGAN, OVER
from mimawari.notify.models import How
from mimawari.notify.models import Setting as Notified
from mimawari.settings import Settings
from mimawari.sim.sites.mercari.items import FRANCHISES
from mimawari.sim.sites.yahoo_realestate.names import AREAS
from mimawari.sim.sites.youtube.programme import Programme, Shot
from mimawari.watches.books import jobs
from mimawari.watches.books.models import Search
from mimawari.watches.hot import franchises
from mimawari.watches.hot.models import NewIp
from mimawari.watches.prices import products
from mimawari.watches.prices.models import Setting
from mimawari.watches.rentals import lists
from mimawari.watches.streams import actions
from mimawari.watches.streams.actions import Client
from mimawari.watches.streams.schemas.requests import ConfigIn, MonitorIn

SEED = 1
STARTS_AT = datetime(2026, 2, 14, 10, 45, tzinfo=UTC)
"""When it is in the world as a demo begins: a Saturday evening in Japan, always the same one."""
MINUTE = timedelta(minutes=1)

TRADED = FRANCHISES[4:]
"""All but the liveliest, of which a month takes too long to make."""
WATCHED = ("ghost", "demon", "bento", "choir", "survey", "junk")
PRODUCTS = (
    ("幽霊部長 ぬいぐるみ", Setting(keyword="幽霊部長 ぬいぐるみ", exclusions=("ジャンク",))),
    ("小さな魔王 プライズ", Setting(keyword="小さな魔王 プライズ", median_percent=20)),
    ("ラグナブルー アクスタ", Setting(keyword="ラグナブルー アクリルスタンド", median_percent=30)),
)
AREA = AREAS[0]
ROOMS = 40
"""So many rooms of the list are kept; a new one is read when the hourly five allow it."""
SEARCHES = (
    Search(name="python-books", queries=("intitle:Python",), max_per_run=20, mail_limit=5),
    Search(name="consultant-books", queries=("コンサルティング", "経営戦略"), mail_limit=5),
)
BOOKS_EVERY = timedelta(minutes=20)
ENDING = Search(
    name="neko-books",
    queries=("猫 inauthor:巡田",),
    max_per_run=10,
    mail_limit=10,
    every_for=10 * MINUTE,
)
"""Finds so few books that it soon has them all."""
LIST_EVERY = timedelta(hours=1)
PACE = {
    "hot_base_interval": 20 * MINUTE,
    "hot_min_interval": 10 * MINUTE,
    "hot_max_interval": 30 * MINUTE,
    "hot_pages_on_sale": 1,
    "hot_pages_sold": 1,
    "prices_cron": "*/10 * * * *",
    "prices_first_pages": 2,
    "prices_pages": 1,
}
"""How often and how far is looked, so that there is something new every few real seconds."""
SEGMENT_SECONDS = 20.0
"""Ten times as long as usual, since they come sixty times as fast."""

NOTIFIED = Notified(
    url="mailto:you@example.org",
    kinds=(BEGAN, OVER, "prices.alert_opened", "rentals.new", "streams.blackout"),
    how=How.GROUPED,
    span=10 * MINUTE,
)
"""What is told to the mail catcher, where every digest is too."""

_DAY = timedelta(days=1)
PROGRAMMES = (
    Programme(
        video_id="demo-kurage",
        title="【定点】くらげ水槽ライブ ときどき消灯",
        starts_at=STARTS_AT - _DAY,
        shots=(Shot(what="black", start=86400 + 480, end=86400 + 720, every=1800),),
        segment_seconds=SEGMENT_SECONDS,
    ),
    Programme(
        video_id="demo-hikiga",
        title="40分だけ歌います【弾き語り】",
        starts_at=STARTS_AT - 10 * MINUTE,
        seconds=2400,
        shots=(Shot(what="silence", start=900, end=1200),),
        segment_seconds=SEGMENT_SECONDS,
    ),
    Programme(
        video_id="demo-zatsud",
        title="【雑談】今夜もゆるっと配信 たぶん遅れます",
        scheduled_at=STARTS_AT + 20 * MINUTE,
        starts_at=STARTS_AT + 45 * MINUTE,
        seconds=3600,
        segment_seconds=SEGMENT_SECONDS,
    ),
    Programme(
        video_id="demo-kokuch",
        title="【重大発表】明日の配信をお楽しみに",
        scheduled_at=STARTS_AT + _DAY,
        starts_at=STARTS_AT + _DAY,
        segment_seconds=SEGMENT_SECONDS,
    ),
)
"""One goes black, one is silent and ends, one begins late, one is still to come."""


async def add_past(tx: Tx, settings: Settings, now: datetime) -> None:
    """Add what is watched from the first day of the past on."""
    chosen = [one for one in FRANCHISES if one.key in WATCHED]
    new = [NewIp(name=one.name, name_en=one.english, keyword=one.keyword) for one in chosen]
    await franchises.add_ips(tx, new, settings, now)
    for name, setting in PRODUCTS:
        await products.add_product(tx, name, setting, settings, now)
    for search in SEARCHES:
        await jobs.add_job(tx, search, settings, now)


async def add_present(system: System) -> None:
    """Add what is watched from the demo's own start on: a search for rooms, and streams."""
    settings, now = system.settings, system.clock.now()
    async with system.store.edit() as tx:
        url = f"{settings.rentals_url}/rent/search/{AREA.path}/"
        await lists.add_list(tx, url, ROOMS, LIST_EVERY, settings, now)
        for search in SEARCHES:
            await jobs.change_job(tx, search.name, _often, settings, now)
        await jobs.add_job(tx, ENDING, settings, now)
        await notify.add_target(tx, "you", NOTIFIED, now)
    client = Client(name="demo", is_counted=False)
    for programme in PROGRAMMES:
        await actions.add(system, _monitor(programme, settings), client)


def _often(job: Search) -> Search:
    given = {name: getattr(job, name) for name in Search.__dataclass_fields__}
    return Search(**{**given, "every_for": BOOKS_EVERY})


def _monitor(programme: Programme, settings: Settings) -> MonitorIn:
    config = ConfigIn(
        check_interval_sec=60,
        scheduled_start_time=programme.scheduled_at,
        snapshot=True,
        loudness_threshold_sec=60,
    )
    return MonitorIn(
        stream_url=f"https://www.youtube.com/watch?v={programme.video_id}",
        callback_url=f"{settings.rentals_url}/hooks/demo",
        config=config,
        metadata={"title": programme.title},
    )
