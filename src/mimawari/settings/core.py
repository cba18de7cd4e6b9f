"""The settings of the whole, and how they are read."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    AliasChoices,
    AwareDatetime,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import NoDecode, SettingsConfigDict

from mimawari.errors import BadInput
from mimawari.settings.books import BooksSettings
from mimawari.settings.hot import HotSettings
from mimawari.settings.mail import MailSettings
from mimawari.settings.notify import NotifySettings
from mimawari.settings.prices import PricesSettings
from mimawari.settings.rentals import RentalsSettings
from mimawari.settings.streams import StreamsSettings
from mimawari.settings.types import (
    Address,
    Dsn,
    Duration,
    SecretWord,
    Whole,
    Words,
    check_networks,
    named,
)

FILE = "mimawari.db"


class Settings(
    BooksSettings,
    HotSettings,
    MailSettings,
    NotifySettings,
    PricesSettings,
    RentalsSettings,
    StreamsSettings,
):
    """What an operator may set; docs/settings.md says the same in words."""

    # With the prefix a field's own name is its first alias: a variable PORT is none of ours.
    model_config = SettingsConfigDict(
        env_prefix="MIMAWARI_", populate_by_name=True, extra="ignore", frozen=True
    )

    data: Path = Field(
        default_factory=lambda: user_data_path("mimawari", appauthor=False),
        validation_alias=named("MIMAWARI_DATA"),
        description="The folder that holds the database, the API keys and kept pages.",
    )
    database_url: str = Field(
        default="",
        validation_alias=named("MIMAWARI_DATABASE_URL", "DB_DSN"),
        description="The database; empty means SQLite in the data folder.",
    )
    redis_url: str = Field(
        default="",
        validation_alias=named("MIMAWARI_REDIS_URL"),
        description="A Redis that hands out work, wakes and caches for many processes.",
    )
    host: str = Field(
        default="127.0.0.1",
        validation_alias=named("MIMAWARI_HOST"),
        description="The address the API listens on.",
    )
    port: Whole = Field(
        default=8084,
        ge=0,
        le=65535,
        validation_alias=named("MIMAWARI_PORT"),
        description="The port the API listens on; 0 takes a free one.",
    )
    trusted_proxies: Annotated[Words, AfterValidator(check_networks)] = Field(
        default=(),
        validation_alias=named("MIMAWARI_TRUSTED_PROXIES"),
        description="Proxies, by address or CIDR, whose X-Forwarded-For and X-Forwarded-Proto"
        " are believed; empty means none.",
    )
    api_keys: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        validation_alias=named("MIMAWARI_API_KEYS", "API_KEY"),
        description="API keys, comma-separated; without any the key file in the data folder.",
    )
    api_rate: Whole = Field(
        default=600,
        ge=1,
        le=1_000_000,
        validation_alias=named("MIMAWARI_API_RATE"),
        description="Requests a minute each API client may make, over all API processes.",
    )
    tls_cert: Path | None = Field(
        default=None,
        validation_alias=named("MIMAWARI_TLS_CERT"),
        description="The PEM file of the API's certificate with its chain; with it TLS is served.",
    )
    tls_key: Path | None = Field(
        default=None,
        validation_alias=named("MIMAWARI_TLS_KEY"),
        description="The PEM file of the certificate's key, without a password.",
    )
    log_level: str = Field(
        default="info",
        validation_alias=named("MIMAWARI_LOG_LEVEL", "LOG_LEVEL"),
        description="The least important log lines to write: debug, info, warning or error.",
    )
    sentry_dsn: Dsn = Field(
        default=SecretStr(""),
        validation_alias=named("MIMAWARI_SENTRY_DSN"),
        description="The DSN of the Sentry project that is told of errors; empty means none.",
    )
    bugsnag_key: SecretWord = Field(
        default=SecretStr(""),
        validation_alias=named("MIMAWARI_BUGSNAG_KEY"),
        description="The API key of the BugSnag project that is told of errors; empty means none.",
    )
    bugsnag_url: Address = Field(
        default="https://notify.bugsnag.com",
        validation_alias=named("MIMAWARI_BUGSNAG_URL"),
        description="Where BugSnag takes errors; a server of one's own may speak its language.",
    )
    time_scale: float = Field(
        default=1.0,
        gt=0,
        le=100_000,
        validation_alias=named("MIMAWARI_TIME_SCALE"),
        description="How many seconds pass in one; for demonstrations and tests.",
    )
    time_anchor: AwareDatetime | None = Field(
        default=None,
        validation_alias=named("MIMAWARI_TIME_ANCHOR"),
        description="From when on scaled time is counted, where programs are to share it.",
    )
    zone: ZoneInfo = Field(
        default=ZoneInfo("Asia/Tokyo"),
        validation_alias=named("MIMAWARI_ZONE"),
        description="The time zone in which days, weeks and months are counted.",
    )
    scheduler_batch: Whole = Field(
        default=50,
        ge=1,
        le=10_000,
        validation_alias=named("MIMAWARI_SCHEDULER_BATCH", "SCHEDULER_BATCH_SIZE"),
        description="How many due targets are enqueued in one step.",
    )
    scheduler_deepest: Whole = Field(
        default=25,
        ge=0,
        le=1_000_000,
        validation_alias=named("MIMAWARI_SCHEDULER_DEEPEST", "SCHEDULER_BACKPRESSURE_THRESHOLD"),
        description="Targets of a kind are held back while more jobs of it than this wait.",
    )
    janitor_every: Duration = Field(
        default=timedelta(minutes=5),
        validation_alias=named("MIMAWARI_JANITOR_EVERY", "JANITOR_INTERVAL"),
        description="How often the janitor makes its round.",
    )
    janitor_timeout: Duration = Field(
        default=timedelta(minutes=10),
        validation_alias=named("MIMAWARI_JANITOR_TIMEOUT", "JANITOR_TIMEOUT"),
        description=(
            "How long a crawl of the hot watch, or the counting of its result, may take, here or"
            " by another program in Redis; then it is tried again."
        ),
    )
    keep_done: Duration = Field(
        default=timedelta(days=7),
        validation_alias=named("MIMAWARI_KEEP_DONE"),
        description="How long jobs that went well are kept.",
    )
    keep_dead: Duration = Field(
        default=timedelta(days=90),
        validation_alias=named("MIMAWARI_KEEP_DEAD"),
        description="How long dead letters and gone things are kept.",
    )
    keep_events: Duration = Field(
        default=timedelta(days=30),
        validation_alias=named("MIMAWARI_KEEP_EVENTS"),
        description="How long events that were delivered or given up are kept.",
    )
    is_demo: bool = Field(
        default=False,
        validation_alias=named("MIMAWARI_IS_DEMO"),
        description="Whether all is made up, which every page then says;"
        " nothing then leaves this machine.",
    )
    contact: str = Field(
        default="",
        max_length=200,
        pattern=r"^[\x21-\x7e]*$",
        validation_alias=named("MIMAWARI_CONTACT"),
        description="Where sites may reach you: a mail or web address, told in the User-Agent.",
    )
    allow_hosts: Words = Field(
        default=(),
        validation_alias=named("MIMAWARI_ALLOW_HOSTS"),
        description="Hosts, host:port or CIDR that may be reached though they are not public.",
    )
    robots_ignore: Words = Field(
        default=(),
        validation_alias=named("MIMAWARI_ROBOTS_IGNORE"),
        description="Sites whose robots.txt need not be heeded: mercari, yahoo_realestate, …",
    )
    proxies: Words = Field(
        default=(),
        repr=False,
        validation_alias=named("MIMAWARI_PROXIES"),
        description="Egress proxies in the order of their use, as http://user:password@host:port.",
    )
    chromium: str = Field(
        default="",
        validation_alias=named("MIMAWARI_CHROMIUM"),
        description="The Chromium to start; empty means the system's own.",
    )
    mercari_mode: Literal["api", "browser"] = Field(
        default="api",
        validation_alias=named("MIMAWARI_MERCARI_MODE"),
        description="How Mercari is read: by its API, or by its pages in a browser.",
    )
    mercari_url: Address = Field(
        default="https://jp.mercari.com",
        validation_alias=named("MIMAWARI_MERCARI_URL"),
        description="Where Mercari's pages are.",
    )
    mercari_api_url: Address = Field(
        default="https://api.mercari.jp",
        validation_alias=named("MIMAWARI_MERCARI_API_URL"),
        description="Where Mercari's API is.",
    )
    rentals_url: Address = Field(
        default="https://realestate.yahoo.co.jp",
        validation_alias=named("MIMAWARI_RENTALS_URL"),
        description="Where the rental listings are.",
    )
    google_books_url: Address = Field(
        default="https://www.googleapis.com",
        validation_alias=named("MIMAWARI_GOOGLE_BOOKS_URL"),
        description="Where the Google Books API is.",
    )

    @field_validator("api_keys", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        keys = tuple(key.strip() for key in value.split(","))
        if not all(keys):
            raise ValueError("an API key is empty; give at least one key or unset the variable")
        return keys

    @field_validator("data", mode="before")
    @classmethod
    def _some_folder(cls, value: Any) -> Any:
        if isinstance(value, str) and not value.strip():
            raise ValueError("must name a folder; unset the variable for the usual one")
        return value

    @field_validator("log_level")
    @classmethod
    def _level(cls, value: str) -> str:
        if value.lower() not in {"debug", "info", "warning", "warn", "error"}:
            raise ValueError("must be debug, info, warning or error")
        return value.lower()

    @property
    def scheme(self) -> str:
        """The scheme of the API's addresses."""
        return "http" if self.tls_cert is None else "https"

    @property
    def database(self) -> str:
        """The database's URL."""
        return self.database_url or f"sqlite:///{self.data / FILE}"


DEFAULTS: Settings = Settings.model_construct()
"""Every setting at its default, whatever the environment says."""


def load_settings() -> Settings:
    """Read the environment; a value that cannot be used is named with what is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        lines = [_sentence(problem["loc"], problem["msg"]) for problem in error.errors()]
        raise BadInput("; ".join(lines), code="bad_setting") from error


def _sentence(where: tuple[int | str, ...], problem: str) -> str:
    """Name the variable and what is wrong with it; what concerns several names them itself."""
    said = problem.removeprefix("Value error, ")
    return f"{_given_name(str(where[0]))}: {said}" if where else said


def _given_name(first: str) -> str:
    """Name the variable that was set, of those that set the same field."""
    names = next((names for names in map(names_of, Settings.model_fields) if first in names), ())
    given = {name.upper() for name in os.environ}
    return next((name for name in names if name in given), first)


def names_of(field: str) -> tuple[str, ...]:
    """List the environment variables that set a field."""
    alias = Settings.model_fields[field].validation_alias
    choices = alias.choices if isinstance(alias, AliasChoices) else []
    return tuple(str(choice) for choice in choices)
