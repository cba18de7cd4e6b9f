"""The site: who gets in, what forms must bring, and how every page is guarded."""

import html
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import mimawari.web
from mimawari.web.session import make_once
from mimawari.web.words import LANGUAGES, choose_language, load_words
from tests.app.ground import OTHER_KEY
from tests.conftest import Databases
from tests.web.ground import Browser, open_site

ROOT = Path(mimawari.web.__file__).parent


async def test_a_stranger_is_led_to_the_login(stranger: Browser) -> None:
    for path in ("/", "/nowhere", "/changes"):
        found = await stranger.get(path)
        assert (found.status_code, found.headers["location"]) == (303, "/login")


async def test_a_key_logs_in_and_another_word_does_not(stranger: Browser) -> None:
    wrong = await stranger.log_in("wrong")
    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    right = await stranger.log_in(OTHER_KEY)
    assert (right.status_code, right.headers["location"]) == (303, "/")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "<main" in await stranger.see("/")


async def test_a_link_logs_in_once(stranger: Browser) -> None:
    word = await make_once(stranger.api.store.sessions)
    assert (await stranger.get(f"/login?once={word}")).headers["location"] == "/"
    stranger.http.cookies.clear()
    again = await stranger.get(f"/login?once={word}")
    assert (again.status_code, "set-cookie" in again.headers) == (200, False)
    assert 'role="alert"' in again.text


@pytest.mark.parametrize("word", ["", "%", "a*", "é", "x" * 5000])
async def test_a_link_that_nobody_made_is_none(stranger: Browser, word: str) -> None:
    found = await stranger.get(f"/login?once={word}")
    assert "set-cookie" not in found.headers


async def test_a_form_without_its_token_changes_nothing(visitor: Browser) -> None:
    refused = await visitor.http.post("/logout", data={"token": "other"})
    assert refused.status_code == 422
    assert "<main" in await visitor.see("/")
    left = await visitor.send("/logout")
    assert left.headers["location"] == "/login"
    assert (await visitor.get("/")).status_code == 303


async def test_every_page_is_guarded_and_never_kept(visitor: Browser) -> None:
    for path in ("/", "/login", "/nowhere", "/static/site.css"):
        headers = (await visitor.get(path)).headers
        assert "script-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        is_file = path.startswith("/static/")
        assert headers["cache-control"] == ("public, max-age=3600" if is_file else "no-store")


@pytest.mark.parametrize("name", ["..%2fsite.py", "site.py", "nothing.css", "%2e%2e/x"])
async def test_no_file_but_those_of_its_looks_is_served(stranger: Browser, name: str) -> None:
    assert (await stranger.get(f"/static/{name}")).status_code in {303, 404}


async def test_the_language_is_the_browsers_until_it_is_chosen(stranger: Browser) -> None:
    assert 'lang="en"' in await stranger.see("/login", **{"Accept-Language": "fr, en;q=0.5"})
    assert '<html lang="ja"' in await stranger.see("/login")
    chosen = await stranger.get("/language?to=en&back=/login")
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/login")
    assert '<html lang="en"' in await stranger.see("/login", **{"Accept-Language": "ja"})


async def test_the_language_changes_where_the_visitor_is_with_all_that_was_chosen(
    visitor: Browser,
) -> None:
    page = await visitor.see("/queue?state=done&kind=hot.crawl")
    (link,) = re.findall(r'href="(/language[^"]+)"', page)
    chosen = await visitor.get(html.unescape(link))
    assert chosen.headers["location"] == "/queue?state=done&kind=hot.crawl"
    refused = (await visitor.send("/rentals/searches", url="nowhere")).text
    assert "back=/rentals&" in refused.replace('"', "&")


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example"])
async def test_nobody_is_led_away(stranger: Browser, back: str) -> None:
    found = await stranger.http.get("/language", params={"to": "en", "back": back})
    assert found.headers["location"] == "/"


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("", "ja"), ("en", "en"), ("en-US,ja;q=0.9", "en"), ("en;q=0.1,ja-JP", "ja"), ("x;q=z", "ja")],
)
def test_a_language_is_chosen_as_browsers_mean_it(accepted: str, language: str) -> None:
    assert choose_language(None, accepted) == language


def test_both_languages_have_the_same_words_with_the_same_places() -> None:
    first, *others = (load_words(language) for language in LANGUAGES)
    for words in others:
        assert words.keys() == first.keys()
        for key, text in words.items():
            places = set(re.findall(r"\{(\w+)\}", text))
            assert places == set(re.findall(r"\{(\w+)\}", first[key])), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_word_stands_in_two_files(language: str) -> None:
    files = [yaml.safe_load(file.read_text("utf-8")) for file in ROOT.glob(f"words/{language}/*")]
    assert len(load_words(language)) == sum(map(len, files))


def test_every_word_that_a_page_says_is_there_and_no_other() -> None:
    sources = [*ROOT.glob("*.py"), *ROOT.glob("templates/**/*.html")]
    text = "\n".join(source.read_text("utf-8") for source in sources)
    known = set(load_words("ja"))
    said = set(re.findall(r"""(?:\bt|words)\(\s*["']([a-z_]+\.[a-z_0-9.]+)["']""", text))
    assert said <= known, said - known
    named = set(re.findall(r"""["']([a-z_]+\.[a-z_0-9.]+)["']""", text))
    by_name = {"unit", "state", "wrong", "rentals_field", "notify_field"}
    by_name |= set(re.findall(r"""maybe\(\s*["']([a-z_]+)["']""", text))
    unused = {key for key in known - named if key.partition(".")[0] not in by_name}
    assert not unused


async def test_no_page_holds_script_or_style_of_its_own(visitor: Browser) -> None:
    for path in ("/", "/login"):
        page = await visitor.see(path)
        assert not re.search(r"<script(?![^>]*\bsrc=)", page)
        assert not re.search(r"\s(?:style|on[a-z]+)=", page)


@pytest.mark.parametrize(
    ("given", "led"),
    [
        ({"is_demo": True, "google_books_url": "http://127.0.0.1:8080"}, True),
        ({"is_demo": True}, False),
        ({"google_books_url": "http://127.0.0.1:8080"}, False),
    ],
)
async def test_a_demo_leads_to_the_mail_and_the_webhooks_that_its_world_was_sent(
    databases: Databases, tmp_path: Path, given: dict[str, Any], led: bool
) -> None:
    async with open_site(await databases.ready(), tmp_path, **given) as browser:
        await browser.log_in()
        page = await browser.see("/")
    for link in ("http://127.0.0.1:8080/mail/", "http://127.0.0.1:8080/hooks/demo"):
        assert (f'href="{link}"' in page) is led
