"""The ground of the tests of the rentals watch's commands: a data folder with some properties."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from mimawari.kernel.clock import RealClock
from mimawari.store.sql import SqlStore
from tests.ready import lay_tables
from tests.rentals.scene import ADDRESS
from tests.rentals.seeing import keep, keep_gone, on_list, on_page

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
SEASIDE, TOWER = "a" * 10 + "0" * 34, "a" * 10 + "1" * 34
HOSTILE_ID, GONE, UNSEEN, OTHER = "_" + "b" * 44, "c" * 44, "d" * 44, "e" * 44
HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
WAYS: list[dict[str, Any]] = [
    {"station": "汐見駅", "line": "巡回線", "walk_minutes": 6, "bus_minutes": 0},
    {"station": "北駅", "line": None, "walk_minutes": 2, "bus_minutes": 15},
]
VARIABLES = {"MIMAWARI_RENTALS_URL": ADDRESS}


async def fill(data: Path) -> None:
    """Keep a room whose rent fell twice, one that was seen once, and some that are gone."""
    clock = RealClock()
    store = SqlStore(await lay_tables(data / "mimawari.db"), clock)
    now = clock.now()
    ways = json.dumps(WAYS, ensure_ascii=False)
    await keep(store, now - 5 * DAY, on_list(SEASIDE, stations=ways, rent_yen=120_000))
    await keep(store, now - 4 * DAY, on_list(SEASIDE, rent_yen=110_000))
    first = on_page(SEASIDE, rent_yen=100_000, built_on="2019-03", years_old=7)
    await keep(store, now - 3 * DAY, first)
    moved = json.dumps([{**WAYS[0], "walk_minutes": 7}], ensure_ascii=False)
    await keep(store, now - 2 * DAY, on_page(SEASIDE, rent_yen=100_000, stations=moved))
    await keep(store, now - HOUR, on_list(TOWER, layout="3LDK", area_m2=80.25, rent_yen=300_000))
    await keep(store, now - 2 * HOUR, on_list(HOSTILE_ID, building_name=HOSTILE, rent_yen=None))
    await keep(store, now - 3 * HOUR, on_list(GONE, rent_yen=50_000, fee_yen=0))
    await keep_gone(store, now - HOUR, [GONE, UNSEEN])
    await store.close()
