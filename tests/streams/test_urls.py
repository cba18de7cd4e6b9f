"""Many spellings of an address are one stream, and what is none is refused with a hint."""

import pytest

from mimawari.errors import BadInput
from mimawari.settings.streams import PLATFORMS
from mimawari.watches.streams.urls import name_of, parse_stream, platform_of
from tests.streams.scene import VIDEO

WATCH = f"https://www.youtube.com/watch?v={VIDEO}"
KEPT = {
    "youtube": WATCH,
    "twitch": "https://twitch.tv/hoshikuzu",
    "niconico": "https://live.nicovideo.jp/watch/lv345678901",
    "hls": "https://origin.test:8443/a/master.m3u8?key=1",
}


@pytest.mark.parametrize(
    "spelling",
    [
        WATCH,
        f"http://www.youtube.com/watch?v={VIDEO}",
        f"https://m.youtube.com/watch?v={VIDEO}",
        f"https://youtube.com/watch?v={VIDEO}",
        f"https://www.youtube.com/watch?app=desktop&v={VIDEO}&t=12s",
        f"https://www.youtube.com/watch?v={VIDEO}#chat",
        f"https://youtu.be/{VIDEO}?si=abc",
    ],
)
def test_every_spelling_of_a_video_is_the_same_stream(spelling: str) -> None:
    assert parse_stream(spelling, ("youtube",)) == WATCH


@pytest.mark.parametrize(
    ("spelling", "platform"),
    [
        ("https://www.twitch.tv/hoshikuzu/", "twitch"),
        ("http://m.twitch.tv/hoshikuzu?sr=a#x", "twitch"),
        ("https://sp.live.nicovideo.jp/watch/lv345678901?ref=top", "niconico"),
        ("https://live2.nicovideo.jp/watch/lv345678901", "niconico"),
        ("https://ORIGIN.test:8443/a/master.m3u8?key=1#t", "hls"),
    ],
)
def test_streams_of_other_platforms_have_one_address_too(spelling: str, platform: str) -> None:
    assert parse_stream(spelling, PLATFORMS) == KEPT[platform]
    assert parse_stream(spelling, (platform,)) == KEPT[platform]


@pytest.mark.parametrize(("port", "kept"), [(":443", ""), (":8443", ":8443")])
def test_a_port_that_goes_without_saying_is_not_said(port: str, kept: str) -> None:
    found = parse_stream(f"https://origin.test{port}/a.m3u8", ("hls",))
    assert found == f"https://origin.test{kept}/a.m3u8"


@pytest.mark.parametrize("platform", PLATFORMS)
def test_the_platform_of_what_is_kept_is_known(platform: str) -> None:
    assert platform_of(KEPT[platform]) == platform


def test_a_resolver_is_asked_for_a_video_by_its_id_and_for_others_by_their_address() -> None:
    assert name_of(KEPT["youtube"]) == VIDEO
    assert name_of(KEPT["twitch"]) == KEPT["twitch"]


@pytest.mark.parametrize("platform", ["twitch", "niconico", "hls"])
def test_other_platforms_are_refused_unless_a_setting_opens_them(platform: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_stream(KEPT[platform], ("youtube",))
    assert refused.value.code == "INVALID_URL"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "https://www.youtube.com/@channel/live",
        "https://www.youtube.com/channel/UCabcdefghijklmnopqrstuv",
        "https://twitch.tv/",
        "https://twitch.tv.evil.test/x",
        "https://twitch.tv:8080/x",
        "https://user:pass@origin.test/a.m3u8",
        "https://user@twitch.tv/x",
        "ftp://origin.test/a.m3u8",
        "file:///etc/passwd.m3u8",
        "https:///a.m3u8",
        "https://origin.test/a.mpd",
        "https://[::1/a.m3u8",
        "https://origin.test:99999/a.m3u8",
        "https://origin.test/" + "a" * 500 + ".m3u8",
    ],
)
def test_what_names_no_stream_is_refused_everywhere(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_stream(url, PLATFORMS)
    assert refused.value.code == "INVALID_URL"
