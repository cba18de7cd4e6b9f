"""Streams that can never be reached are refused when they are added; others may be some day."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mimawari.settings.streams import PLATFORMS
from tests.app.ground import check_error
from tests.conftest import Databases
from tests.streams.api_ground import Desk, body_of, open_desk

PLAYLIST = "/live/master.m3u8"
NEVER_REACHED = {
    "loopback": f"http://127.0.0.1{PLAYLIST}",
    "loopback by name": f"https://localhost:8443{PLAYLIST}",
    "a private address": f"https://10.0.0.1{PLAYLIST}",
    "a link-local address": f"http://169.254.169.254{PLAYLIST}",
    "IPv6 loopback": f"http://[::1]{PLAYLIST}",
    "IPv6 mapped": f"http://[::ffff:10.0.0.1]{PLAYLIST}",
    "a number in disguise": f"http://2130706433{PLAYLIST}",
    "a name that is none": f"https://a..b{PLAYLIST}",
    "a space in the host": f"https://ori gin.test{PLAYLIST}",
    "port 0": f"https://93.184.215.14:0{PLAYLIST}",
    "ftp": f"ftp://93.184.215.14{PLAYLIST}",
    "rtmp": "rtmp://93.184.215.14/live/stream",
    "a page of Twitch that shows many": "https://www.twitch.tv/directory/game/Chess",
    "a recording of Twitch": "https://www.twitch.tv/videos/123456",
    "the front page of niconico": "https://live.nicovideo.jp/ranking",
}
MAYBE_REACHED = {
    "a name that nobody knows now": f"https://origin.invalid{PLAYLIST}",
    "a public address": f"https://93.184.215.14{PLAYLIST}",
    "a public IPv6 address": f"https://[2606:2800:220:1::1]:8443{PLAYLIST}",
    "a host that is opened": f"http://10.1.2.3:8080{PLAYLIST}",
    "a channel of Twitch": "https://www.twitch.tv/hoshikuzu_ch",
    "a programme of niconico": "https://live.nicovideo.jp/watch/lv345678901",
}


@pytest.fixture(scope="module")
async def wide(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Desk]:
    """A desk at which streams of all platforms may be monitored."""
    given: dict[str, Any] = {"streams_platforms": PLATFORMS, "allow_hosts": ("10.1.2.3:8080",)}
    folder = tmp_path_factory.mktemp("wide")
    async with open_desk(await databases.ready(), folder, **given) as opened:
        yield opened


@pytest.mark.parametrize("what", NEVER_REACHED)
async def test_invalid_url_for_a_stream_that_can_never_be_reached(wide: Desk, what: str) -> None:
    response = await wide.post({**body_of(), "stream_url": NEVER_REACHED[what]})
    check_error(response, 400, "INVALID_URL")


async def test_the_refusal_of_a_stream_says_what_to_do(wide: Desk) -> None:
    response = await wide.post({**body_of(), "stream_url": NEVER_REACHED["a private address"]})
    message = check_error(response, 400, "INVALID_URL")
    assert "add 10.0.0.1:443 to MIMAWARI_ALLOW_HOSTS" in message


@pytest.mark.parametrize("what", MAYBE_REACHED)
async def test_a_stream_that_may_be_reached_some_day_is_taken(wide: Desk, what: str) -> None:
    response = await wide.post({**body_of(), "stream_url": MAYBE_REACHED[what]})
    assert response.status_code == 201, response.text
