"""The page of settings: every one of them, what has set it, and no secret."""

from pathlib import Path
from typing import Any

import pytest

from mimawari.settings import Settings, names_of
from mimawari.web.settings import make_shown, write_value
from mimawari.web.words import LANGUAGES, Words, load_words
from tests.conftest import Databases
from tests.web.ground import Browser, open_site

SECRETS: dict[str, Any] = {
    "webhook_key": "letmein",
    "smtp_password": "letmein",
    "books_key": "letmein",
    "internal_key": "letmein",
    "bugsnag_key": "letmein",
    "sentry_dsn": "https://letmein@example.org/1",
    "api_keys": ("letmein", "letmein2"),
    "proxies": ("http://user:letmein@proxy.example:8080",),
}


async def test_every_setting_is_there_with_what_it_does(visitor: Browser) -> None:
    page = await visitor.see("/settings", **{"Accept-Language": "en"})
    for field in Settings.model_fields:
        assert all(f"<code>{name}</code>" in page for name in names_of(field)), field


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_setting_is_described_in_every_language_and_no_other(language: str) -> None:
    words = load_words(language)
    described = {key.partition(".")[2] for key in words if key.startswith("setting.")}
    assert described == set(Settings.model_fields)


def test_english_describes_settings_in_their_own_words() -> None:
    words = load_words("en")
    for name, field in Settings.model_fields.items():
        assert words[f"setting.{name}"] == field.description


async def test_no_secret_is_shown(databases: Databases, tmp_path: Path) -> None:
    async with open_site(await databases.ready(), tmp_path, **SECRETS) as browser:
        await browser.log_in()
        page = await browser.see("/settings")
    assert "letmein" not in page
    assert page.count("***") == len(SECRETS) + 1


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("", ""),
        ("postgresql://user:letmein@host/name", "postgresql://user:***@host/name"),
        ("postgresql://host/name?password=letmein", "postgresql://host/name?password=***"),
        ("letmein", "***"),
    ],
)
def test_a_database_is_shown_without_its_password(url: str, shown: str) -> None:
    assert write_value("database_url", url, Words("en")).replace("%2A", "*") == shown


def test_what_has_set_a_setting_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MIMAWARI_STREAMS_MOST", raising=False)
    monkeypatch.setenv("MAX_MONITORS", "7")
    shown = make_shown("streams_most", Settings(), Words("en"))
    assert (shown.value, shown.default, shown.source) == ("7", "50", "MAX_MONITORS")
    assert not shown.is_default
    given = make_shown("port", Settings(port=1), Words("en"))
    assert (given.value, given.source, given.is_default) == ("1", "", False)
    usual = make_shown("keep_done", Settings(), Words("ja"))
    assert (usual.value, usual.source, usual.is_default) == ("7d", "", True)
    assert usual.said == "成功したジョブを残す期間。"
