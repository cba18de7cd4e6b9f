"""Every setting by every name of its own, and one clear sentence for what cannot be used."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pydantic import SecretStr

from mimawari.app.commands.sim import serve_world
from mimawari.errors import BadInput
from mimawari.settings import DEFAULTS, Settings, load_settings, names_of

Load = Callable[..., Settings]
FIELDS = tuple(Settings.model_fields)


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Read settings from an environment of just the variables given."""
    for name in {*os.environ} & {name for field in FIELDS for name in names_of(field)}:
        monkeypatch.delenv(name)

    def read(**variables: str) -> Settings:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return load_settings()

    return read


URL = "postgresql://user:word@host/name"
DSN = "https://0123abcd@sentry.example:9000/folder/42"
EXAMPLES: dict[str, tuple[str, Any]] = {
    "data": ("/some/folder", Path("/some/folder")),
    "database_url": (URL, URL),
    "redis_url": ("redis://there:6379/1", "redis://there:6379/1"),
    "hot_item_ttl_available": ("2h", timedelta(hours=2)),
    "hot_item_ttl_sold": ("3h", timedelta(hours=3)),
    "host": ("::1", "::1"),
    "port": ("0", 0),
    "api_keys": ("one, ключ", ("one", "ключ")),
    "api_rate": ("7", 7),
    "log_level": ("WARNING", "warning"),
    "sentry_dsn": (DSN, SecretStr(DSN)),
    "bugsnag_key": ("0123abcd", SecretStr("0123abcd")),
    "bugsnag_url": ("https://bugs.example/", "https://bugs.example"),
    "time_scale": ("2.5", 2.5),
    "scheduler_batch": ("17", 17),
    "scheduler_deepest": ("0", 0),
    "janitor_every": ("1h30m", timedelta(minutes=90)),
    "janitor_timeout": ("3m", timedelta(minutes=3)),
    "keep_done": ("2d", timedelta(days=2)),
    "keep_dead": ("300", timedelta(minutes=5)),
    "keep_events": ("36500d", timedelta(days=36500)),
    "incident_after": ("1", 1),
    "incident_remind": ("7d", timedelta(days=7)),
    "public_url": ("https://watch.example/", "https://watch.example"),
    "trusted_proxies": ("10.0.0.7, fd00::/8", ("10.0.0.7", "fd00::/8")),
    "is_demo": ("true", True),
    "contact": ("mailto:ann@example.com", "mailto:ann@example.com"),
    "allow_hosts": ("127.0.0.1:80, 10.0.0.0/8,", ("127.0.0.1:80", "10.0.0.0/8")),
    "robots_ignore": ("mercari", ("mercari",)),
    "proxies": ("http://a:1,http://b:2", ("http://a:1", "http://b:2")),
    "chromium": ("/opt/chromium", "/opt/chromium"),
    "mercari_mode": ("browser", "browser"),
    "mercari_url": ("http://127.0.0.1:8085/", "http://127.0.0.1:8085"),
    "mercari_api_url": ("http://[::1]:8085", "http://[::1]:8085"),
    "rentals_url": ("https://rentals.example", "https://rentals.example"),
    "google_books_url": ("https://books.example", "https://books.example"),
    "smtp_host": ("::1", "::1"),
    "smtp_port": ("465", 465),
    "smtp_security": ("none", "none"),
    "smtp_user": ("ann@example.org", "ann@example.org"),
    "smtp_password": ("four words of pass", SecretStr("four words of pass")),
    "mail_to": ("ann@example.org, bob@example.org", ("ann@example.org", "bob@example.org")),
    "mail_language": ("en", "en"),
    "mail_unsubscribe": ("https://example.org/stop", "https://example.org/stop"),
    "mail_from": ("new.books@example.org", "new.books@example.org"),
    "time_anchor": ("2026-01-31T09:00:00+09:00", datetime(2026, 1, 31, tzinfo=UTC)),
    "zone": ("Europe/Berlin", ZoneInfo("Europe/Berlin")),
    "hot_base_interval": ("90m", timedelta(minutes=90)),
    "hot_min_interval": ("30m", timedelta(minutes=30)),
    "hot_max_interval": ("6h", timedelta(hours=6)),
    "hot_pages_on_sale": ("3", 3),
    "hot_pages_sold": ("7", 7),
    "hot_rule": ("fill", "fill"),
    "hot_keep_hourly": ("8d", timedelta(days=8)),
    "hot_keep_daily": ("40d", timedelta(days=40)),
    "hot_keep_weekly": ("100d", timedelta(days=100)),
    "hot_keep_items": ("41d", timedelta(days=41)),
    "hot_alert_outflow": ("20", 20),
    "hot_alert_liquidity_low": ("0.5", 0.5),
    "hot_alert_liquidity_high": ("3", 3.0),
    "hot_alert_price_drop": ("0.35", 0.35),
    "hot_alert_samples": ("5", 5),
    "prices_cron": ("*/15 8-20 * * 1-5", "*/15 8-20 * * 1-5"),
    "prices_first_pages": ("20", 20),
    "prices_pages": ("2", 2),
    "prices_unseen_after": ("6h", timedelta(hours=6)),
    "books_key": ("a-key", SecretStr("a-key")),
    "books_calls": ("7", 7),
    "books_recheck_after": ("30d", timedelta(days=30)),
    "books_mail_unnumbered": ("true", True),
    "rentals_details_per_hour": ("2", 2),
    "rentals_rest_after": ("40", 40),
    "rentals_rest_for": ("2h", timedelta(hours=2)),
    "rentals_archive_after": ("1d", timedelta(days=1)),
    "rentals_keep_failed": ("10d", timedelta(days=10)),
    "streams_resolver_url": ("http://127.0.0.1:8085/resolve", "http://127.0.0.1:8085/resolve"),
    "streams_resolves": ("1000", 1000),
    "streams_most": ("7", 7),
    "streams_platforms": ("youtube, hls", ("youtube", "hls")),
    "streams_reconcile_for": ("45", timedelta(seconds=45)),
    # The other one needs a key beside it.
    "streams_runner": ("process", "process"),
    "streams_per_pod": ("5", 5),
    "gateway_url": ("http://gateway:8086", "http://gateway:8086"),
    "kubernetes_namespace": ("stream-monitor", "stream-monitor"),
    "kubernetes_image": ("registry.example/mimawari:1", "registry.example/mimawari:1"),
    "kubernetes_pull_secrets": ("one, two", ("one", "two")),
    "kubernetes_start_for": ("1m", timedelta(minutes=1)),
    "tls_cert": ("/tls/tls.crt", Path("/tls/tls.crt")),
    "tls_key": ("/tls/tls.key", Path("/tls/tls.key")),
    "webhook_key": ("a secret of words", SecretStr("a secret of words")),
    "internal_key": ("another", SecretStr("another")),
    "internal_host": ("::1", "::1"),
    "internal_port": ("0", 0),
}
NAMES = [(field, name) for field in FIELDS for name in names_of(field)]


def sentence(load: Load, **variables: str) -> str:
    """Return the sentence an environment is refused with."""
    with pytest.raises(BadInput) as refused:
        load(**variables)
    assert refused.value.code == "bad_setting"
    assert "\n" not in str(refused.value)
    return str(refused.value)


@pytest.mark.parametrize(("field", "name"), NAMES)
def test_every_name_sets_its_field(load: Load, field: str, name: str) -> None:
    text, value = EXAMPLES[field]
    assert getattr(load(**{name: text}), field) == value


@pytest.mark.parametrize(
    ("alias", "field"),
    [
        ("DB_DSN", "database_url"),
        ("API_KEY", "api_keys"),
        ("LOG_LEVEL", "log_level"),
        ("SCHEDULER_BATCH_SIZE", "scheduler_batch"),
        ("SCHEDULER_BACKPRESSURE_THRESHOLD", "scheduler_deepest"),
        ("JANITOR_INTERVAL", "janitor_every"),
        ("SCHEDULER_BASE_INTERVAL", "hot_base_interval"),
        ("SCHEDULER_MIN_INTERVAL", "hot_min_interval"),
        ("SCHEDULER_MAX_INTERVAL", "hot_max_interval"),
        ("SCHEDULER_PAGES_ON_SALE", "hot_pages_on_sale"),
        ("SCHEDULER_PAGES_SOLD", "hot_pages_sold"),
        ("MAX_MONITORS", "streams_most"),
        ("GATEWAY_RECONCILE_TIMEOUT", "streams_reconcile_for"),
        ("WEBHOOK_SIGNING_KEY", "webhook_key"),
        ("INTERNAL_API_KEY", "internal_key"),
    ],
)
def test_the_names_of_the_specs_are_known_and_ours_goes_first(
    load: Load, alias: str, field: str
) -> None:
    ours, theirs = names_of(field)
    assert theirs == alias
    text, value = EXAMPLES[field]
    other = {"database_url": "sqlite:///x", "api_keys": "x", "log_level": "debug"}.get(field, "9")
    assert getattr(load(**{alias: other, ours: text}), field) == value


def test_all_have_a_default_that_works(load: Load) -> None:
    settings = load()
    assert (settings.host, settings.port, settings.api_keys) == ("127.0.0.1", 8084, ())
    assert settings.data.is_absolute()
    assert settings.database == f"sqlite:///{settings.data / 'mimawari.db'}"
    assert load(DB_DSN=URL).database == URL


def test_variables_of_others_are_left_alone(load: Load) -> None:
    others = {"HOST": "h", "PORT": "1", "DATA": "/x", "TIME_SCALE": "9", "API_KEYS": "x"}
    assert load(**others) == load()
    assert load().port == 8084


BAD = [
    ("MIMAWARI_PORT", "65536"),
    ("MIMAWARI_PORT", "-1"),
    ("MIMAWARI_PORT", "8_084"),
    ("MIMAWARI_PORT", "\uff18\uff10"),
    ("MIMAWARI_PORT", ""),
    ("MIMAWARI_DATA", " "),
    ("MIMAWARI_API_RATE", "0"),
    ("MIMAWARI_TIME_SCALE", "0"),
    ("MIMAWARI_TIME_SCALE", "nan"),
    ("MIMAWARI_TIME_SCALE", "fast"),
    ("LOG_LEVEL", "loud"),
    ("MIMAWARI_LOG_LEVEL", ""),
    ("SCHEDULER_BATCH_SIZE", "many"),
    ("SCHEDULER_BACKPRESSURE_THRESHOLD", "-1"),
    ("SCHEDULER_BACKPRESSURE_THRESHOLD", str(10**30)),
    ("MIMAWARI_SENTRY_DSN", "nonsense"),
    ("MIMAWARI_SENTRY_DSN", "https://host/42"),
    ("MIMAWARI_SENTRY_DSN", "https://key@host"),
    ("MIMAWARI_SENTRY_DSN", "https://key@host/name"),
    ("MIMAWARI_SENTRY_DSN", "https://key@host:99999/42"),
    ("MIMAWARI_BUGSNAG_KEY", "two words"),
    ("MIMAWARI_BUGSNAG_URL", "bugs.example"),
    ("MIMAWARI_MAIL_TO", "ann@example.org, bob"),
    ("MIMAWARI_MAIL_TO", ",".join(f"a{number}@example.org" for number in range(51))),
    ("MIMAWARI_MAIL_LANGUAGE", "fr"),
    ("MIMAWARI_MAIL_UNSUBSCRIBE", "http://example.org/stop"),
    ("MIMAWARI_BOOKS_KEY", "two words"),
    ("MIMAWARI_STREAMS_RESOLVER_URL", "resolver.example"),
    ("MIMAWARI_STREAMS_RESOLVER_URL", "http://host/path?v="),
    ("STREAMS_PLATFORMS", "youtube,radio"),
    ("STREAMS_PLATFORMS", ""),
    ("MAX_MONITORS", "0"),
    ("GATEWAY_RECONCILE_TIMEOUT", "0"),
    ("INTERNAL_API_KEY", "two words"),
    ("MIMAWARI_STREAMS_RUNNER", "pods"),
    ("MIMAWARI_STREAMS_PER_POD", "0"),
    ("MIMAWARI_KUBERNETES_NAMESPACE", "Not A Name"),
    ("MIMAWARI_KUBERNETES_IMAGE", "two words"),
    ("MIMAWARI_BOOKS_CALLS", "-1"),
    ("MIMAWARI_BOOKS_RECHECK_AFTER", "0s"),
    ("MIMAWARI_BOOKS_MAIL_UNNUMBERED", "perhaps"),
    ("MIMAWARI_SMTP_HOST", "smtp.example:587"),
    ("MIMAWARI_SMTP_HOST", "https://smtp.example"),
    ("MIMAWARI_SMTP_HOST", "smtp..example"),
    ("MIMAWARI_SMTP_PORT", "0"),
    ("MIMAWARI_SMTP_SECURITY", "ssl"),
    ("MIMAWARI_SMTP_USER", "ann\tlee"),
    ("MIMAWARI_MAIL_FROM", "Ann <ann@example.org>"),
    ("MIMAWARI_MAIL_FROM", "ann@"),
    ("MIMAWARI_MAIL_FROM", "安@example.org"),
    ("MIMAWARI_MAIL_FROM", f"{'a' * 65}@example.org"),
    ("JANITOR_INTERVAL", "often"),
    ("JANITOR_INTERVAL", "0s"),
    ("JANITOR_INTERVAL", "\uff15"),
    ("MIMAWARI_KEEP_DONE", f"{'9' * 20}d"),
    ("MIMAWARI_KEEP_DEAD", "36501d"),
    ("MIMAWARI_KEEP_EVENTS", "-1d"),
    ("MIMAWARI_INCIDENT_AFTER", "0"),
    ("MIMAWARI_INCIDENT_REMIND", "0s"),
    ("MIMAWARI_PUBLIC_URL", "https://host/path"),
    ("MIMAWARI_PUBLIC_URL", "https://[::1"),
    ("MIMAWARI_PUBLIC_URL", "https://host:99999"),
    ("MIMAWARI_PUBLIC_URL", "https://:443"),
    ("MIMAWARI_TRUSTED_PROXIES", "*"),
    ("MIMAWARI_TRUSTED_PROXIES", "proxy.example"),
    ("MIMAWARI_TRUSTED_PROXIES", "10.0.0.1/8"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_value_is_refused_by_the_name_it_was_given_under(
    load: Load, name: str, value: str
) -> None:
    message = sentence(load, **{name: value})
    assert message.startswith(f"{name}: ")
    assert "Value error" not in message


@pytest.mark.parametrize("name", ["MIMAWARI_API_KEYS", "API_KEY"])
@pytest.mark.parametrize("value", ["", " ", ",", "good,", ",good", "good, ,better"])
def test_an_empty_api_key_is_refused_and_no_key_is_repeated(
    load: Load, name: str, value: str
) -> None:
    message = sentence(load, **{name: value})
    assert message.startswith(f"{name}: an API key is empty")
    assert "good" not in message


def test_whom_errors_are_told_is_shown_without_the_keys(load: Load) -> None:
    settings = load(MIMAWARI_SENTRY_DSN=DSN, MIMAWARI_BUGSNAG_KEY="0123abcd")
    assert "0123abcd" not in f"{settings!r} {settings}"
    wrong = {"MIMAWARI_SENTRY_DSN": f"{DSN}?", "MIMAWARI_BUGSNAG_KEY": "0123abcd 4"}
    assert "0123abcd" not in sentence(load, **wrong)


def test_the_password_of_the_mail_server_is_never_shown(load: Load) -> None:
    settings = load(MIMAWARI_SMTP_USER="ann", MIMAWARI_SMTP_PASSWORD="open-sesame")
    assert "sesame" not in f"{settings!r} {settings}"
    assert "sesame" not in sentence(load, MIMAWARI_SMTP_PASSWORD="open\tsesame")


def test_a_password_that_would_be_sent_without_tls_is_refused(load: Load) -> None:
    message = sentence(load, MIMAWARI_SMTP_USER="ann", MIMAWARI_SMTP_SECURITY="none")
    assert message.startswith("MIMAWARI_SMTP_SECURITY is none, but a password is never sent")


def test_all_that_is_wrong_is_said_at_once(load: Load) -> None:
    message = sentence(load, MIMAWARI_PORT="x", LOG_LEVEL="x")
    assert "MIMAWARI_PORT: " in message
    assert "; LOG_LEVEL: " in message


def test_settings_cannot_be_changed(load: Load) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load().port = 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"MIMAWARI_HOT_MIN_INTERVAL": "3h"}, "MIMAWARI_HOT_MIN_INTERVAL is longer than"),
        ({"SCHEDULER_MAX_INTERVAL": "10m"}, "MIMAWARI_HOT_MIN_INTERVAL is longer than"),
        ({"MIMAWARI_HOT_KEEP_HOURLY": "7d"}, "MIMAWARI_HOT_KEEP_HOURLY: "),
        ({"MIMAWARI_HOT_KEEP_ITEMS": "30d"}, "MIMAWARI_HOT_KEEP_ITEMS: "),
        ({"MIMAWARI_HOT_PAGES_SOLD": "0"}, "MIMAWARI_HOT_PAGES_SOLD: "),
        ({"MIMAWARI_HOT_RULE": "best"}, "MIMAWARI_HOT_RULE: "),
        ({"MIMAWARI_HOT_ALERT_PRICE_DROP": "nan"}, "MIMAWARI_HOT_ALERT_PRICE_DROP: "),
        ({"MIMAWARI_ZONE": "Asia/Edo"}, "MIMAWARI_ZONE: "),
        ({"MIMAWARI_TIME_ANCHOR": "2026-01-31T09:00:00"}, "MIMAWARI_TIME_ANCHOR: "),
    ],
    ids=str,
)
def test_settings_of_the_hot_watch_that_make_no_sense_are_named(
    load: Load, given: dict[str, str], words: str
) -> None:
    with pytest.raises(BadInput) as refused:
        load(**given)
    assert str(refused.value).startswith(words)


def test_no_two_parts_want_the_same_port_unless_told() -> None:
    world = signature(serve_world).parameters["port"].default
    assert len({DEFAULTS.port, DEFAULTS.internal_port, world}) == 3


def test_pods_are_not_run_without_the_key_by_which_they_report(load: Load) -> None:
    with pytest.raises(BadInput, match="INTERNAL_API_KEY"):
        load(MIMAWARI_STREAMS_RUNNER="kubernetes")
    found = load(MIMAWARI_STREAMS_RUNNER="kubernetes", INTERNAL_API_KEY="a-key")
    assert found.streams_runner == "kubernetes"
