"""The settings of the prices watch."""

from datetime import UTC, datetime, timedelta

from cronsim import CronSim, CronSimError
from pydantic import Field, field_validator
from pydantic_settings import BaseSettings

from mimawari.settings.types import Duration, Whole, named


class PricesSettings(BaseSettings):
    """When products are crawled, and how far."""

    prices_cron: str = Field(
        default="0 * * * *",
        max_length=100,
        validation_alias=named("MIMAWARI_PRICES_CRON"),
        description="When products are crawled, as cron writes it, in the configured time zone.",
    )
    prices_first_pages: Whole = Field(
        default=50,
        ge=1,
        le=200,
        validation_alias=named("MIMAWARI_PRICES_FIRST_PAGES"),
        description="How many pages of each side the first crawl of a product reads at the most.",
    )
    prices_pages: Whole = Field(
        default=3,
        ge=1,
        le=50,
        validation_alias=named("MIMAWARI_PRICES_PAGES"),
        description="How many pages of each side a later crawl reads.",
    )
    prices_unseen_after: Duration = Field(
        default=timedelta(hours=24),
        validation_alias=named("MIMAWARI_PRICES_UNSEEN_AFTER"),
        description="What was not seen on sale for so long is no cheapest, bargain or alert.",
    )

    @field_validator("prices_cron")
    @classmethod
    def _a_time(cls, value: str) -> str:
        try:
            next(CronSim(value, datetime(2026, 1, 1, tzinfo=UTC)))
        except (CronSimError, StopIteration) as error:
            raise ValueError("must be five fields as cron writes them, like `0 * * * *`") from error
        return value
