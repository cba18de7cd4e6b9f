"""The part `hot_board`: the time that a leaderboard of 10,000 IPs takes."""

import asyncio
import gc
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median, quantiles

import asyncpg
from rich.progress import Progress
from sqlalchemy import func, insert, select
from sqlalchemy.schema import CreateIndex

from bench.ours import open_store
from bench.program import sqlite_path
from bench.queue import databases
from bench.report import Part, Row, ratio
from mimawari.columns import to_micros
from mimawari.kernel.ports import Store
from mimawari.watches.hot import queries, sync
from mimawari.watches.hot.models import Coverage
from mimawari.watches.hot.queries import Board, Standing, Window
from mimawari.watches.hot.tables import hours, ips

ENGINES = ("sqlite", "postgresql")
IPS, HOURS = 10_000, 720
WINDOWS = (24, 168)
LOOKS, CACHED_LOOKS, PLAIN_LOOKS = 30, 300, 3
START_AT = datetime(2026, 1, 1, tzinfo=UTC)
NOW = START_AT + timedelta(hours=HOURS, minutes=30)
HOUR_MICROS = 3_600_000_000
KEY = f"{queries.LEADERBOARD}bench"

[AT] = hours.indexes
Look = Callable[[Store, int], Awaitable[object]]

# So many a day for each IP, spread evenly: a total up to an hour is known without adding up.
SUM_IN, SUM_OUT = "({} * (3 + ip * 7919 % 480) / 24)", "({} * (1 + ip * 104729 % 360) / 24)"
FILL = f"""
INSERT INTO ip_stats_hourly (ip_id, hour_at, inflow, outflow, samples, average_yen, median_yen,
    least_yen, most_yen, stddev_yen, inflow_total, outflow_total)
SELECT ip, {to_micros(START_AT)} + hour * {HOUR_MICROS},
    {SUM_IN.format("(hour + 1)")} - {SUM_IN.format("hour")},
    {SUM_OUT.format("(hour + 1)")} - {SUM_OUT.format("hour")},
    3, 2100.5, 1800.0, 300, 9800, 1234.5,
    {SUM_IN.format("(hour + 1)")}, {SUM_OUT.format("(hour + 1)")}
FROM {{rows}}"""
SQLITE_ROWS = f"""
(WITH RECURSIVE i(ip) AS (SELECT 1 UNION ALL SELECT ip + 1 FROM i WHERE ip < {IPS}),
    h(hour) AS (SELECT 0 UNION ALL SELECT hour + 1 FROM h WHERE hour < {HOURS - 1})
    SELECT ip, hour FROM i CROSS JOIN h)"""
# Hour after hour, as the rows come in; what an hour brings lies together.
POSTGRES_ROWS = f"""
generate_series(0::bigint, {HOURS - 1}) AS h(hour) CROSS JOIN LATERAL
    (SELECT ip FROM generate_series(1, {IPS}) ip WHERE h.hour >= 0) i"""


def fill_sqlite(path: str) -> None:
    """Write all hours of all IPs, with nothing kept safe meanwhile."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"DROP INDEX {AT.name}")
        connection.execute(FILL.format(rows=SQLITE_ROWS))
        connection.execute(str(CreateIndex(AT)))
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


async def fill_postgres(url: str) -> None:
    """Write all hours of all IPs, then make the keys, and let the server learn what is there."""
    connection = await asyncpg.connect(url)
    try:
        # Checking each row's owner, which is known to be there, would take most of the time.
        await connection.execute("SET session_replication_role = replica")
        await connection.execute("ALTER TABLE ip_stats_hourly DROP CONSTRAINT ip_stats_hourly_pkey")
        await connection.execute(f"DROP INDEX {AT.name}")
        await connection.execute(FILL.format(rows=POSTGRES_ROWS))
        await connection.execute(str(CreateIndex(AT)))
        await connection.execute("ALTER TABLE ip_stats_hourly ADD PRIMARY KEY (ip_id, hour_at)")
        await connection.execute("ANALYZE ip_stats_hourly, ip_metadata")
    finally:
        await connection.close()


async def fill(store: Store, engine: str, url: str) -> None:
    """Keep all IPs and their hours."""
    same = {
        "name_en": "",
        "weight": 1.0,
        "active": True,
        "tags": "[]",
        "failures": 0,
        "last_error": "",
        **sync.coverage_values(Coverage()),
        "created_at": START_AT,
        "updated_at": START_AT,
        "hour_at": START_AT + timedelta(hours=HOURS - 1),
    }
    names = [(number, f"作品{number}") for number in range(1, IPS + 1)]
    rows = [
        {
            "id": number,
            "name": name,
            "keyword": name,
            "inflow_total": HOURS * (3 + number * 7919 % 480) // 24,
            "outflow_total": HOURS * (1 + number * 104729 % 360) // 24,
            **same,
        }
        for number, name in names
    ]
    async with store.edit() as tx:
        await tx.execute(insert(ips), rows)
    if engine == "sqlite":
        await asyncio.to_thread(fill_sqlite, sqlite_path(url))
    else:
        await fill_postgres(url)


async def look_up(store: Store, count: int) -> bytes:
    """Make the first hundred of a leaderboard, with their places before, from what is kept."""
    async with store.read() as reader:
        window = Window.before(NOW, count)
        ranked = await queries.list_ranked(reader, Board.HOT, window, queries.MOST_RANKED)
    return _write(
        {one.ip.id: one.previous_rank for one in ranked}, [one.standing for one in ranked]
    )


async def look_plainly(store: Store, count: int) -> bytes:
    """Make the same by adding up all hours of both windows."""
    window = Window.before(NOW, count)
    span = window.end_at - window.start_at
    before = Window(start_at=window.start_at - span, end_at=window.start_at)
    earlier = queries.rank(await _sum_up(store, before), Board.HOT, IPS)
    places = {one.ip_id: place for place, one in enumerate(earlier, start=1)}
    first = queries.rank(await _sum_up(store, window), Board.HOT, queries.MOST_RANKED)
    async with store.read() as reader:
        await queries.find_names(reader, [one.ip_id for one in first])
    return _write({one.ip_id: places.get(one.ip_id) for one in first}, first)


async def _sum_up(store: Store, window: Window) -> list[Standing]:
    at = hours.c.hour_at
    query = (
        select(hours.c.ip_id, func.sum(hours.c.inflow), func.sum(hours.c.outflow))
        .join(ips, ips.c.id == hours.c.ip_id)
        .where(ips.c.active, at >= window.start_at, at < window.end_at)
        .group_by(hours.c.ip_id)
    )
    async with store.read() as reader:
        rows = await reader.execute(query)
    return [Standing(ip_id, int(inflow), int(outflow)) for ip_id, inflow, outflow in rows]


def _write(places: Mapping[int, int | None], first: Sequence[Standing]) -> bytes:
    shown = [{**one._asdict(), "score": one.score, "before": places[one.ip_id]} for one in first]
    return json.dumps(shown).encode()


async def look_in_cache(store: Store, count: int) -> object:
    """Read the same from the cache."""
    del count
    found = await store.cache.get(KEY)
    if found is None:
        raise LookupError("nothing is in the cache")
    return json.loads(found)


async def spend(look: Look, store: Store, count: int, times: int) -> list[float]:
    """Give the milliseconds that each of some looks took."""
    spent = []
    for _ in range(times):
        start = time.perf_counter()
        await look(store, count)
        spent.append((time.perf_counter() - start) * 1000)
    return spent


async def measure(engine: str, url: str, advance: Callable[[], None]) -> list[Row]:
    """Fill a store and look at it in every way."""
    rows = []
    async with open_store(url) as store:
        await fill(store, engine, url)
        advance()
        # As the server does when it has started.
        gc.collect()
        gc.freeze()
        for count in WINDOWS:
            ours, plain = await look_up(store, count), await look_plainly(store, count)
            if ours != plain:
                raise ValueError(f"{engine}: the two ways rank differently")
            await store.cache.set(KEY, ours, timedelta(hours=1))
            plainly = await spend(look_plainly, store, count, PLAIN_LOOKS)
            rows += _rows(engine, f"{count}h", await spend(look_up, store, count, LOOKS), plainly)
            advance()
        cached = await spend(look_in_cache, store, 0, CACHED_LOOKS)
        rows += _rows(engine, "cached", cached, plainly)
    return rows


def _rows(engine: str, name: str, ours: Sequence[float], plain: Sequence[float]) -> list[Row]:
    """Set our p50 and p99 beside the median of adding up."""
    peer = median(plain)
    return [
        Row(
            bench="hot_board",
            engine=engine,
            measure=f"{name}_{share}_ms",
            ours=value,
            peer="sum of hours",
            peer_value=peer,
            ratio_to_peer=ratio(value, peer),
            floor=None,
            ratio_to_floor=None,
            runs=len(ours),
        )
        for share, value in (("p50", median(ours)), ("p99", quantiles(ours, n=100)[98]))
    ]


def run(progress: Progress) -> Part:
    """Measure on each engine."""
    rows: list[Row] = []
    for engine in ENGINES:
        task = progress.add_task(engine, total=1 + len(WINDOWS))
        with databases(engine) as fresh, fresh() as url:
            rows += asyncio.run(measure(engine, url, partial(progress.advance, task)))
    note = (
        f"{IPS:,} IPs with {HOURS} hours each; the first {queries.MOST_RANKED} by hot score, with"
        f" names and places before; {LOOKS} looks one after another, {CACHED_LOOKS} from the cache;"
        f" sum of hours: the median of {PLAIN_LOOKS} looks that add up the rows of both windows;"
        " less is better"
    )
    return Part(rows, [note])
