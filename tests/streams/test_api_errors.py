"""Every code of the API's table of errors, in its envelope and with its status."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi import APIRouter

from mimawari.watches.streams import watch
from tests.app.ground import OTHER_KEY, check_error
from tests.conftest import Databases
from tests.streams.api_ground import (
    CALLBACK,
    MONITORS,
    Desk,
    body_of,
    open_desk,
    url_of,
    video_of,
)

ODD_IDS = (
    "mon-00000000000000000000000000000000",
    "MON-0190A5C8E4B07D8A9C1D2E3F4A5B6C7D",
    "x",
    "%00",
    "%ff",
    "a%27%3B--",
    "..%5c..",
    "配信",
    "m" * 3000,
)
NOT_A_VIDEO = {
    "a channel": "https://www.youtube.com/@example",
    "a channel by its id": "https://www.youtube.com/channel/UCxxxxxxxxxxxxxxxxxxxxxx",
    "a channel's live page": "https://www.youtube.com/@example/live",
    "a playlist": "https://www.youtube.com/playlist?list=PLxxxxxxxxxxxxxxxx",
    "a short": "https://www.youtube.com/shorts/video000001",
    "an embedded player": "https://www.youtube.com/embed/video000001",
    "two videos": "https://www.youtube.com/watch?v=video000001&v=video000002",
    "no video": "https://www.youtube.com/watch",
    "an id too short": "https://www.youtube.com/watch?v=video00001",
    "an id too long": "https://www.youtube.com/watch?v=video0000001",
    "an id of other letters": "https://www.youtube.com/watch?v=vid%20o000001",
    "another host": "https://www.example.com/watch?v=video000001",
    "a host that begins alike": "https://www.youtube.com.example.com/watch?v=video000001",
    "a host that ends alike": "https://notyoutube.com/watch?v=video000001",
    "a host behind a password": "https://www.youtube.com@example.com/watch?v=video000001",
    "a password": "https://user:word@www.youtube.com/watch?v=video000001",
    "another port": "https://www.youtube.com:8080/watch?v=video000001",
    "a port that is none": "https://www.youtube.com:99999/watch?v=video000001",
    "another platform": "https://www.twitch.tv/example",
    "a playlist of HLS": "https://example.com/live.m3u8",
    "no scheme": "www.youtube.com/watch?v=video000001",
    "a script": "javascript:alert(1)//www.youtube.com/watch?v=video000001",
    "a file": "file:///etc/passwd",
    "too long": f"https://www.youtube.com/watch?v=video000001&x={'x' * 500}",
    "nothing": "",
    "a line break": "https://www.youtube.com/watch?v=video000001\r\nHost: example.com",
    "a broken bracket": "https://[::1/watch?v=video000001",
    "a number": 5,
    "null": None,
}
NOT_A_CALLBACK = {
    "loopback": "http://127.0.0.1/hook",
    "loopback by name": "http://localhost:8000/hook",
    "a private address": "https://10.0.0.1/hook",
    "another private address": "https://192.168.1.1/hook",
    "a link-local address": "http://169.254.169.254/latest/meta-data",
    "one number": "http://2130706433/hook",
    "octal": "http://0177.0.0.1/hook",
    "hexadecimal": "http://0x7f.1/hook",
    "short": "http://127.1/hook",
    "IPv6 loopback": "http://[::1]/hook",
    "IPv6 mapped": "http://[::ffff:127.0.0.1]/hook",
    "IPv6 mapped, in hexadecimal": "http://[::ffff:7f00:1]/hook",
    "full-width digits": "http://\uff11\uff12\uff17.0.0.1/hook",
    "a password": "https://user:word@93.184.215.14/hook",
    "ftp": "ftp://93.184.215.14/hook",
    "a file": "file:///etc/passwd",
    "no scheme": "93.184.215.14/hook",
    "no host": "https:///hook",
    "a port that is none": "https://93.184.215.14:99999/hook",
    "port 0": "https://93.184.215.14:0/hook",
    "a space in the host": "https://93.184.215.14 evil/hook",
    "more than 512 letters": f"{CALLBACK}?{'x' * 500}",
    "nothing": "",
    "a list": [CALLBACK],
}
OTHER = {b"X-API-Key": OTHER_KEY.encode()}
WINDOW = {"from": "2026-06-01T10:00:00Z", "to": "2026-06-01T11:00:00Z"}
BAD_CONFIG: dict[str, Any] = {
    "an interval of 0": {"check_interval_sec": 0},
    "an interval of 301": {"check_interval_sec": 301},
    "an interval in words": {"check_interval_sec": "10"},
    "an interval of a half": {"check_interval_sec": 10.5},
    "an interval that is true": {"check_interval_sec": True},
    "an interval that is null": {"check_interval_sec": None},
    "a huge interval": {"check_interval_sec": 2**40},
    "black for 0": {"blackout_threshold_sec": 0},
    "black for less than nothing": {"blackout_threshold_sec": -1},
    "black in words": {"blackout_threshold_sec": "30"},
    "silent for 0": {"silence_threshold_sec": 0},
    "silent for more than a day": {"silence_threshold_sec": 86_401},
    "a level above 0": {"silence_db_threshold": 0.1},
    "a level below all": {"silence_db_threshold": -121},
    "a level in words": {"silence_db_threshold": "-50"},
    "a naive time": {"scheduled_start_time": "2026-06-01T20:00:00"},
    "a time that is none": {"scheduled_start_time": "2026-02-30T20:00:00Z"},
    "a time as a number": {"scheduled_start_time": 1780315200},
    "a day": {"scheduled_start_time": "2026-06-01"},
    "a tolerance below 0": {"start_delay_tolerance_sec": -1},
    "a tolerance in words": {"start_delay_tolerance_sec": "300"},
    "an unknown field": {"check_interval": 10},
    "another quality": {"quality": "1080p"},
    "freeze for 0": {"freeze_threshold_sec": 0},
    "bars in words": {"bars_threshold_sec": "9"},
    "loudness for 0": {"loudness_threshold_sec": 0},
    "loudness upside down": {"loudness_min_lufs": -5, "loudness_max_lufs": -40},
    "a snapshot in words": {"snapshot": "yes"},
    "no audio in words": {"missing_audio_is_silence": "yes"},
    "a window upside down": {"maintenance": [{"from": WINDOW["to"], "to": WINDOW["from"]}]},
    "a window without an end": {"maintenance": [{"from": WINDOW["from"]}]},
    "a naive window": {"maintenance": [{**WINDOW, "to": "2026-06-01T11:00:00"}]},
    "51 windows": {"maintenance": [WINDOW] * 51},
    "no object": [],
    "a word": "default",
    "null": None,
}
BAD_BODIES = {
    "NaN": b'{"stream_url": "u", "callback_url": "c", "config": {"silence_db_threshold": NaN}}',
    "a NUL": b'{"stream_url": "u", "callback_url": "c", "metadata": {"a": "\\u0000"}}',
    "half a character": b'{"stream_url": "u", "callback_url": "c", "metadata": {"a": "\\ud800"}}',
    "a key twice": b'{"stream_url": "u", "stream_url": "u", "callback_url": "c"}',
    "no JSON": b"stream_url=u",
    "depth 900": b'{"metadata":' * 900 + b"1" + b"}" * 900,
}
SPELLINGS = (
    "https://www.youtube.com/watch?v={}",
    "https://youtube.com/watch?v={}",
    "https://m.youtube.com/watch?v={}",
    "https://music.youtube.com/watch?v={}",
    "http://www.youtube.com/watch?v={}",
    "HTTPS://WWW.YouTube.COM/watch?v={}",
    "https://www.youtube.com:443/watch?v={}",
    "https://www.youtube.com./watch?v={}",
    "https://www.youtube.com/watch/?v={}",
    "https://www.youtube.com/watch?t=5&v={}&list=PLx&feature=share",
    "https://www.youtube.com/watch?v={}&v={}",
    "https://www.youtube.com/watch?v={}#t=5",
    "https://youtu.be/{}",
    "https://youtu.be/{}?si=abc&t=5",
    "https://www.youtube.com/live/{}",
    "https://m.youtube.com/live/{}?feature=share",
    "  https://www.youtube.com/watch?v={}  ",
)


@pytest.fixture(scope="module")
async def calm(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Desk]:
    """A desk that the tests of this module share, and leave as it is."""
    async with open_desk(await databases.ready(), tmp_path_factory.mktemp("calm")) as opened:
        yield opened


@pytest.fixture
async def desk(databases: Databases, tmp_path: Path) -> AsyncIterator[Desk]:
    async with open_desk(await databases.ready(), tmp_path) as opened:
        yield opened


@pytest.mark.parametrize("what", NOT_A_VIDEO)
async def test_invalid_url_for_what_names_no_video(calm: Desk, what: str) -> None:
    response = await calm.post({**body_of(), "stream_url": NOT_A_VIDEO[what]})
    check_error(response, 400, "INVALID_URL")


@pytest.mark.parametrize("what", NOT_A_CALLBACK)
async def test_invalid_url_for_what_may_not_be_called(calm: Desk, what: str) -> None:
    response = await calm.post({**body_of(), "callback_url": NOT_A_CALLBACK[what]})
    check_error(response, 400, "INVALID_URL")


@pytest.mark.parametrize("missing", ["stream_url", "callback_url"])
async def test_invalid_url_for_an_address_that_is_missing(calm: Desk, missing: str) -> None:
    body = {name: value for name, value in body_of().items() if name != missing}
    assert missing in check_error(await calm.post(body), 400, "INVALID_URL")


async def test_a_callback_whose_name_nobody_knows_now_is_taken(desk: Desk) -> None:
    await desk.add(1, callback_url="https://receiver.invalid/hook")


@pytest.mark.parametrize("what", BAD_CONFIG)
async def test_invalid_config_for_each_setting_that_cannot_be_used(calm: Desk, what: str) -> None:
    response = await calm.post(body_of(config=BAD_CONFIG[what]))
    assert "config" in check_error(response, 400, "INVALID_CONFIG")


@pytest.mark.parametrize(
    "metadata", [[], "text", 5, None, {"a": "x" * 16 * 1024}, {"配": "信" * 6000}]
)
async def test_invalid_config_for_metadata_that_cannot_be_kept(calm: Desk, metadata: Any) -> None:
    response = await calm.post(body_of(metadata=metadata))
    assert "metadata" in check_error(response, 400, "INVALID_CONFIG")


@pytest.mark.parametrize("what", BAD_BODIES)
async def test_invalid_config_for_a_body_that_cannot_be_read(calm: Desk, what: str) -> None:
    headers = {"Content-Type": "application/json"}
    response = await calm.http.post(MONITORS, content=BAD_BODIES[what], headers=headers)
    check_error(response, 400, "INVALID_CONFIG")


@pytest.mark.parametrize("body", [[], "text", 5, None])
async def test_invalid_config_for_a_body_that_is_no_object(calm: Desk, body: Any) -> None:
    check_error(await calm.post(body), 400, "INVALID_CONFIG")


async def test_invalid_config_for_a_field_that_nobody_has_heard_of(calm: Desk) -> None:
    response = await calm.post(body_of(callback="https://example.com"))
    assert "callback" in check_error(response, 400, "INVALID_CONFIG")


@pytest.mark.parametrize(
    "query",
    [
        "status=live",
        "status=",
        "limit=0",
        "limit=501",
        "limit=1_0",
        "limit=\uff15",
        "limit=1e1",
        f"limit={10**30}",
        "offset=-1",
        "offset=%2B1",
        "page=2",
    ],
)
async def test_invalid_config_for_a_query_that_cannot_be_used(calm: Desk, query: str) -> None:
    check_error(await calm.http.get(f"{MONITORS}?{query}"), 400, "INVALID_CONFIG")


async def test_invalid_config_while_webhooks_cannot_be_signed(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_desk(await databases.ready(), tmp_path, webhook_key="") as desk:
        message = check_error(await desk.post(body_of()), 400, "INVALID_CONFIG")
        assert "WEBHOOK_SIGNING_KEY" in message


@pytest.mark.parametrize("headers", [{}, {"X-API-Key": "wrong"}, {"X-Internal-API-Key": "the-key"}])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_unauthorized_without_a_key_that_is_ours(
    calm: Desk, method: str, headers: dict[str, str]
) -> None:
    path = f"{MONITORS}/mon-x" if method == "DELETE" else MONITORS
    async with httpx2.AsyncClient(base_url=calm.api.address) as stranger:
        response = await stranger.request(method, path, headers=headers)
    check_error(response, 401, "UNAUTHORIZED")


@pytest.mark.parametrize("monitor_id", ODD_IDS)
async def test_monitor_not_found_under_an_id_that_nobody_has(calm: Desk, monitor_id: str) -> None:
    path = f"{calm.api.address}{MONITORS}/{monitor_id}"
    for response in (
        await calm.http.get(path),
        await calm.http.delete(path),
        await calm.http.get(f"{path}/events"),
    ):
        check_error(response, 404, "MONITOR_NOT_FOUND")


async def test_duplicate_monitor_under_every_spelling(desk: Desk) -> None:
    await desk.add(1)
    for spelling in SPELLINGS:
        response = await desk.post({**body_of(), "stream_url": spelling.replace("{}", video_of(1))})
        assert url_of(1) in check_error(response, 409, "DUPLICATE_MONITOR"), spelling
    assert (await desk.get())["pagination"]["total"] == 1


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_every_spelling_is_shown_as_one(desk: Desk, spelling: str) -> None:
    url = spelling.replace("{}", video_of(1))
    response = await desk.post({**body_of(), "stream_url": url})
    assert response.status_code == 201, response.text
    assert (await desk.get(f"/{response.json()['monitor_id']}"))["stream_url"] == url_of(1)


async def test_a_video_whose_id_differs_in_case_alone_is_another(desk: Desk) -> None:
    for letters in ("AAAAAAAAAAA", "aaaaaaaaaaa"):
        url = f"https://www.youtube.com/watch?v={letters}"
        assert (await desk.post({**body_of(), "stream_url": url})).status_code == 201


async def test_a_stream_may_be_monitored_again_once_its_monitor_is_over(desk: Desk) -> None:
    first = await desk.add(1)
    await desk.stop(first)
    second = await desk.add(1)
    assert first != second
    check_error(await desk.post(body_of(1)), 409, "DUPLICATE_MONITOR")


async def test_rate_limit_exceeded_by_the_11th_monitor_within_a_minute(desk: Desk) -> None:
    for number in range(10):
        await desk.stop(await desk.add(number))
    response = await desk.post(body_of(10))
    assert "60 s" in check_error(response, 429, "RATE_LIMIT_EXCEEDED")
    assert 1 <= int(response.headers["retry-after"]) <= 60
    other = await desk.post(body_of(10), headers=OTHER)
    assert other.status_code == 201
    await desk.clock.advance(timedelta(seconds=60))
    await desk.add(11)


async def test_rate_limit_exceeded_by_the_101st_read_within_a_minute(desk: Desk) -> None:
    monitor_id = await desk.add(1)
    paths = [MONITORS, f"{MONITORS}/{monitor_id}", f"{MONITORS}/{monitor_id}/events"]
    for number in range(100):
        assert (await desk.http.get(paths[number % 3])).status_code == 200
    response = await desk.http.get(MONITORS)
    check_error(response, 429, "RATE_LIMIT_EXCEEDED")
    assert int(response.headers["retry-after"]) >= 1
    other = await desk.http.get(MONITORS, headers=OTHER)
    assert other.status_code == 200
    await desk.stop(monitor_id)
    await desk.clock.advance(timedelta(seconds=60))
    assert (await desk.http.get(MONITORS)).status_code == 200


async def test_max_monitors_exceeded_by_one_more_than_there_may_be(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_desk(await databases.ready(), tmp_path, streams_most=2) as desk:
        first = await desk.add(1)
        await desk.add(2)
        response = await desk.post(body_of(3))
        assert "MAX_MONITORS" in check_error(response, 429, "MAX_MONITORS_EXCEEDED")
        check_error(await desk.post(body_of(2)), 409, "DUPLICATE_MONITOR")
        await desk.stop(first)
        await desk.add(3)


broken_router = APIRouter(prefix=MONITORS)


@broken_router.get("/broken/down")
async def be_broken() -> None:
    """Raise what nobody expects."""
    raise RuntimeError("an inner detail")


async def test_internal_error_tells_nothing_of_what_went_wrong(
    databases: Databases, tmp_path: Path
) -> None:
    broken = replace(watch, router=f"{__name__}:broken_router")
    async with open_desk(await databases.ready(), tmp_path, broken) as desk:
        response = await desk.http.get(f"{MONITORS}/broken/down")
        assert "inner" not in check_error(response, 500, "INTERNAL_ERROR")
