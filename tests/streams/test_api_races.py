"""Many ask for monitors at once: one stream is never monitored twice, nor too many streams."""

import asyncio
from collections import Counter
from pathlib import Path

import httpx2

from tests.conftest import Databases
from tests.streams.api_ground import MONITORS, Desk, body_of, open_desk, video_of

KEYS = tuple(f"key-{number}".encode() for number in range(8))
SPELLINGS = (
    "https://www.youtube.com/watch?v={}",
    "http://m.youtube.com/watch?v={}&t=1",
    "https://youtu.be/{}",
    "https://www.youtube.com/live/{}#x",
)


async def post_all(
    desk: Desk, bodies: list[dict[str, str]], keys: tuple[bytes, ...] = KEYS
) -> list[httpx2.Response]:
    """Ask for all at once, each on a connection of its own, with the keys in turns."""
    limits = httpx2.Limits(max_connections=len(bodies), max_keepalive_connections=0)
    async with httpx2.AsyncClient(base_url=desk.api.address, limits=limits, timeout=60) as http:
        asking = [
            http.post(MONITORS, json=body, headers={"X-API-Key": keys[number % len(keys)].decode()})
            for number, body in enumerate(bodies)
        ]
        return list(await asyncio.gather(*asking))


async def test_of_50_that_ask_for_one_stream_at_once_one_is_served(
    engine: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh(engine)
    async with (
        open_desk(url, tmp_path / "one", keys=KEYS) as desk,
        open_desk(url, tmp_path / "two", keys=KEYS) as other,
    ):
        urls = [SPELLINGS[number % len(SPELLINGS)].format(video_of(1)) for number in range(50)]
        bodies = [{**body_of(), "stream_url": url} for url in urls]
        asking = post_all(desk, bodies[:25]), post_all(other, bodies[25:])
        answers = [answer for some in await asyncio.gather(*asking) for answer in some]
        assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 49}
        codes = {one.json()["error"]["code"] for one in answers if one.status_code == 409}
        assert codes == {"DUPLICATE_MONITOR"}
        assert await count(desk) == 1


async def test_of_60_streams_asked_for_at_once_50_are_monitored(
    engine: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh(engine)
    async with (
        open_desk(url, tmp_path / "one", keys=KEYS) as desk,
        open_desk(url, tmp_path / "two", keys=KEYS) as other,
    ):
        bodies = [body_of(number) for number in range(60)]
        asking = post_all(desk, bodies[:30]), post_all(other, bodies[30:])
        answers = [answer for some in await asyncio.gather(*asking) for answer in some]
        assert Counter(answer.status_code for answer in answers) == {201: 50, 429: 10}
        codes = {one.json()["error"]["code"] for one in answers if one.status_code == 429}
        assert codes == {"MAX_MONITORS_EXCEEDED"}
        assert await count(desk) == 50
        assert len(await desk.api.store.schedule.list(100)) == 50


async def test_of_30_monitors_asked_for_at_once_with_one_key_10_are_added(
    engine: str, databases: Databases, tmp_path: Path
) -> None:
    async with open_desk(databases.fresh(engine), tmp_path, keys=KEYS[:1]) as desk:
        answers = await post_all(desk, [body_of(number) for number in range(30)], KEYS[:1])
        assert Counter(answer.status_code for answer in answers) == {201: 10, 429: 20}
        assert await count(desk) == 10


async def count(desk: Desk) -> int:
    """Count the monitors that there are."""
    headers = {"X-API-Key": KEYS[0].decode()}
    found: int = (await desk.http.get(MONITORS, headers=headers)).json()["pagination"]["total"]
    return found
