"""Sending is real, bounded, guarded, and tells the truth."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from mimawari.errors import BadInput
from mimawari.kernel.clock import RealClock
from mimawari.net.notify import (
    Message,
    Report,
    check_url,
    read_report,
    recipients_of,
    send,
    write_report,
)
from mimawari.settings import DEFAULTS, Settings
from tests.net.post_office import ANN, SENDER, open_office
from tests.notify.catcher import Catcher

MESSAGE = Message(id="1", title="見回り: 家賃の値下げ", body="メゾン見回: 131,000円 → 130,000円")
SOON = timedelta(seconds=3)


async def sent(url: str, settings: Settings, message: Message = MESSAGE) -> Report:
    return await send(url, message, settings, RealClock())


async def test_a_message_arrives_and_the_report_says_what_was_sent_and_answered(
    catcher: Catcher,
) -> None:
    report = await sent(catcher.url("hook/very-secret-word"), catcher.settings)
    [(path, body)] = catcher.caught
    assert (path, body["title"], body["message"]) == (
        "/hook/very-secret-word",
        MESSAGE.title,
        MESSAGE.body,
    )
    [exchange] = report.exchanges
    assert report.is_sent
    assert (exchange.method, exchange.status, exchange.answer) == ("POST", 200, "ありがとう")
    assert exchange.url == f"http://127.0.0.1:{catcher.port}/***"
    assert MESSAGE.body in exchange.sent
    assert "very-secret-word" not in repr(report)
    assert read_report(write_report(report)) == report


async def test_a_receiver_that_repeats_a_secret_does_not_make_us_show_it(catcher: Catcher) -> None:
    catcher.answers["/"] = (403, "no topic my-secret-topic, token=abc123def")
    report = await sent(catcher.url("my-secret-topic", "ntfy"), catcher.settings)
    assert not report.is_sent
    assert report.error == "the receiver answered 403"
    assert "my-secret-topic" not in repr(report)
    assert "abc123def" not in repr(report)


async def test_an_address_that_is_not_public_is_refused_with_the_reason(catcher: Catcher) -> None:
    for scheme in ("json", "jsons"):
        report = await sent(catcher.url(scheme=scheme), DEFAULTS)
        assert not report.is_sent
        assert "127.0.0.1 is not public" in report.error
        assert "MIMAWARI_ALLOW_HOSTS" in report.error
    assert catcher.caught == []


async def test_a_redirection_to_a_private_host_is_not_followed(catcher: Catcher) -> None:
    catcher.answers["/hook"] = (307, "http://10.0.0.1/inside")
    report = await sent(catcher.url(), catcher.settings)
    assert not report.is_sent
    assert "10.0.0.1 is not public" in report.error
    assert [one.status for one in report.exchanges] == [307, None]


@pytest.mark.parametrize(
    "url", ["rsyslog://127.0.0.1", "irc://127.0.0.1/room", "syslog://", "nosuchthing://a/b"]
)
async def test_what_does_not_speak_http_reaches_nothing(url: str) -> None:
    report = await sent(url, DEFAULTS.model_copy(update={"allow_hosts": ("127.0.0.1",)}))
    assert not report.is_sent
    assert report.error
    assert report.exchanges == ()


async def test_a_receiver_that_hangs_is_left_at_the_deadline(catcher: Catcher) -> None:
    catcher.hangs.add("/hook")
    report = await send(catcher.url(), MESSAGE, catcher.settings, RealClock(), SOON)
    assert (report.is_sent, report.error) == (False, "the receiver took longer than 3 s")
    assert len(catcher.caught) == 1


async def test_an_address_is_found_in_a_variable_or_a_file(
    catcher: Catcher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_HOOK", f"{catcher.url('a')}\n")
    (tmp_path / "hook").write_text(catcher.url("b"))
    assert (await sent("env:MY_HOOK", catcher.settings)).is_sent
    assert (await sent(f"file:{tmp_path}/hook", catcher.settings)).is_sent
    assert [path for path, _ in catcher.caught] == ["/a", "/b"]


async def test_a_reference_to_nothing_says_what_to_do() -> None:
    missing = await sent("env:NO_SUCH_HOOK", DEFAULTS)
    assert missing.error.startswith("env:NO_SUCH_HOOK holds no address; put one there")


async def test_a_reference_tells_nothing_about_the_file_it_names(tmp_path: Path) -> None:
    made = {name: tmp_path / name for name in ("absent", "secret", "long", "folder", "pipe", "mad")}
    made["secret"].write_text("root:x:0:0")
    made["long"].write_text("json://host/" + "x" * 5000)
    made["mad"].write_bytes(b"\0\xff")
    made["folder"].mkdir()
    os.mkfifo(made["pipe"])
    paths = [*map(str, made.values()), "/dev/ptmx", "/dev/tty", "/dev/zero", "/etc/shadow"]
    errors = [(await sent(f"file:{path}", DEFAULTS)).error.replace(path, "…") for path in paths]
    assert len(set(errors)) == 1, errors
    assert errors[0].startswith("file:… holds no address; put one there")


@pytest.mark.parametrize("kind", ["pipe", "/dev/ptmx", "/dev/tty", "/dev/stdin"])
async def test_a_file_that_blocks_whoever_opens_it_holds_up_nothing(
    kind: str, tmp_path: Path
) -> None:
    path = kind
    if kind == "pipe":
        path = str(tmp_path / kind)
        os.mkfifo(path)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    turning = asyncio.create_task(turn())
    try:
        async with asyncio.timeout(10):
            assert not (await sent(f"file:{path}", DEFAULTS)).is_sent
    finally:
        turning.cancel()
    assert turns


async def test_an_address_behind_a_link_is_found_as_kubernetes_mounts_it(
    catcher: Catcher, tmp_path: Path
) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "hook").write_text(catcher.url("linked"))
    (tmp_path / "hook").symlink_to("..data/hook")
    assert (await sent(f"file:{tmp_path}/hook", catcher.settings)).is_sent


async def test_mail_goes_by_our_own_server() -> None:
    async with open_office() as office:
        given = {
            "smtp_host": "127.0.0.1",
            "smtp_port": office.port,
            "smtp_security": "none",
            "mail_from": SENDER,
        }
        report = await sent(f"mailto:{ANN}", DEFAULTS.model_copy(update=given))
        assert report.is_sent
        assert [one.recipients for one in office.mails] == [[ANN]]
    assert "MIMAWARI_SMTP_HOST" in (await sent(f"mailto:{ANN}", DEFAULTS)).error


@pytest.mark.parametrize(
    "url",
    [
        "mailto://user:word@gmail.com", "mailtos://a@example.org", "mailto:", "mailto:nobody",
        "", "slack", "slack:", "slack://", "http://a b/", "ntfy://" + "x" * 2000, "ntfy://a\x00",
        "Ünï://x",
    ],
)  # fmt: skip
def test_what_nothing_could_be_sent_to_is_refused(url: str) -> None:
    with pytest.raises(BadInput):
        check_url(url)


def test_mail_may_go_to_several() -> None:
    assert recipients_of("mailto://a@example.org,b@example.org") == (
        "a@example.org",
        "b@example.org",
    )


async def test_what_a_service_does_not_take_at_once_comes_in_pieces(catcher: Catcher) -> None:
    body = "\n".join(f"<{number}> {'長' * 90}" for number in range(80))
    message = Message(id="1", title="t", body=body)
    url = catcher.url("secret-token", "mmost")
    assert (await sent(url, catcher.settings, message)).is_sent
    pieces = [told["text"] for _, told in catcher.caught]
    assert len(pieces) > 1
    assert all(f"<{number}>" in "".join(pieces) for number in range(80))
