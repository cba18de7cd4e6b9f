"""The pages of notifications: targets are kept, tried and shown without their secrets."""

import html
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mimawari.notify import queries
from mimawari.notify.models import How, Target
from tests.conftest import Databases
from tests.notify.catcher import Catcher, open_catcher
from tests.web.ground import HOSTILE, Browser, check_harmless, open_site
from tests.web.notified import notify_somebody

ENGLISH = {"Accept-Language": "en"}


@pytest.fixture
async def catcher() -> AsyncIterator[Catcher]:
    async with open_catcher() as found:
        yield found


@pytest.fixture
async def browser(databases: Databases, tmp_path: Path, catcher: Catcher) -> AsyncIterator[Browser]:
    allowed = catcher.settings.allow_hosts
    async with open_site(await databases.ready(), tmp_path, allow_hosts=allowed) as browser:
        await browser.log_in()
        yield browser


async def targets(browser: Browser) -> list[Target]:
    async with browser.api.store.read() as reader:
        return await queries.list_targets(reader)


async def add(browser: Browser, **fields: str) -> int:
    given = {
        "name": "phone", "how": "at_once", "span": "30m", "daily_at": "08:00", "language": "ja"
    }  # fmt: skip
    answer = await browser.send("/notify", **{**given, **fields})
    assert answer.status_code == 303, answer.text
    return int(answer.headers["location"].rpartition("/")[2])


async def test_a_target_is_added_changed_switched_and_removed(
    browser: Browser, catcher: Catcher
) -> None:
    url = catcher.url("secret-word")
    fields = {"url": url, "w:rentals": "on", "k:rentals.rent_fell": "on", "how": "grouped"}
    number = await add(browser, **fields)
    [kept] = await targets(browser)
    assert (kept.name, kept.setting.url, kept.setting.how) == ("phone", url, How.GROUPED)
    assert (kept.setting.watches, kept.setting.kinds) == (("rentals",), ("rentals.rent_fell",))
    for path in ("/notify", f"/notify/{number}"):
        assert "secret-word" not in await browser.see(path)
    for language in ("ja", "en"):
        page = await browser.see("/notify", **{"Accept-Language": language})
        assert f'<option value="{language}" selected>' in page
    assert "Rentals · rent falls" in await browser.see("/notify", **ENGLISH)
    one = await browser.see(f"/notify/{number}", **ENGLISH)
    assert f'action="/notify/{number}/remove" data-ask="Notify phone no more?' in one
    again = {**fields, "name": "phone", "span": "30m", "daily_at": "08:00", "language": "ja"}
    refused = await browser.send("/notify", **again)
    assert "という名前のあて先は既にあります" in refused.text
    same = {"name": "phone", "how": "daily", "span": "1h", "daily_at": "07:30", "language": "en"}
    await browser.send(f"/notify/{number}", **same)
    [kept] = await targets(browser)
    assert (kept.setting.url, kept.setting.daily_at, kept.setting.kinds) == (url, "07:30", ())
    await browser.send(f"/notify/{number}/switch")
    assert not (await targets(browser))[0].setting.enabled
    await browser.send(f"/notify/{number}/remove")
    assert await targets(browser) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"url": "my-secret-thing"}, "Address: this is no address of apprise"),
        ({"url": "mailto://u:my-secret@x.jp"}, "MIMAWARI_SMTP_HOST"),
        ({"name": " "}, "Name: must have 1 to 100 characters"),
        ({"daily_at": "25:00"}, "write a time of day like 08:00"),
        ({"span": "1s"}, "must be from 1m to 7d"),
        ({"name": "phone"}, "is called"),
    ],
)
async def test_what_cannot_be_taken_is_told_above_the_form(
    browser: Browser, wrong: dict[str, str], said: str
) -> None:
    await add(browser, url="env:MY_HOOK")
    given = {
        "name": "new", "url": "env:X", "how": "at_once", "span": "30m", "daily_at": "08:00",
        "language": "ja", "token": await browser.token(),
    }  # fmt: skip
    answer = await browser.http.post("/notify", data={**given, **wrong}, headers=ENGLISH)
    assert answer.status_code == 422
    assert said in html.unescape(answer.text)
    assert "my-secret" not in answer.text
    assert len(await targets(browser)) == 1


async def test_a_test_really_sends_the_last_event_and_shows_what_happened(
    browser: Browser, catcher: Catcher
) -> None:
    await notify_somebody(browser.api.system, "other")
    catcher.answers["/secret-word"] = (418, "I am a teapot called secret-word")
    number = await add(browser, url=catcher.url("secret-word"), language="en")
    answer = await browser.send(f"/notify/{number}/test")
    assert answer.status_code == 200
    assert HOSTILE in catcher.bodies("secret-word")[0]
    page = html.unescape(answer.text)
    assert "I am a teapot called ***" in page
    assert "418" in page
    assert re.search(r"\d+ ms", page)
    assert "secret-word" not in page
    check_harmless(answer.text)


async def test_a_test_to_a_private_address_says_why_it_is_refused(browser: Browser) -> None:
    number = await add(browser, url="json://10.0.0.1/hook")
    page = (await browser.send(f"/notify/{number}/test")).text
    assert "10.0.0.1 は公開されていないアドレスです" in page
    assert "MIMAWARI_ALLOW_HOSTS" in page


async def test_messages_are_shown_with_what_was_in_the_way_and_run_nothing(
    browser: Browser,
) -> None:
    target = await notify_somebody(browser.api.system)
    async with browser.api.store.read() as reader:
        [send] = await queries.list_sends(reader, target.id, 5)
    for path in ("/notify", f"/notify/{target.id}", f"/notify/sends/{send.id}"):
        page = await browser.see(path)
        check_harmless(page)
        assert "secret-word" not in page


@pytest.mark.parametrize("path", ["/notify/99", "/notify/99999999999", "/notify/sends/none"])
async def test_what_is_not_there_is_not_found(browser: Browser, path: str) -> None:
    assert (await browser.get(path)).status_code == 404
