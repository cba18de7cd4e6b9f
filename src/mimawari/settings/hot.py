"""The settings of the hot watch."""

from datetime import timedelta
from typing import Literal

from pydantic import Field, model_validator
from pydantic_settings import BaseSettings

from mimawari.settings.types import Duration, Whole, named


class HotSettings(BaseSettings):
    """How often franchises are crawled, how far, and what is kept and told of them."""

    hot_base_interval: Duration = Field(
        default=timedelta(hours=2),
        validation_alias=named("MIMAWARI_HOT_BASE_INTERVAL", "SCHEDULER_BASE_INTERVAL"),
        description="How often an IP of weight 1 is crawled.",
    )
    hot_min_interval: Duration = Field(
        default=timedelta(hours=1),
        validation_alias=named("MIMAWARI_HOT_MIN_INTERVAL", "SCHEDULER_MIN_INTERVAL"),
        description="How often an IP is crawled at the most, however heavy it weighs.",
    )
    hot_max_interval: Duration = Field(
        default=timedelta(hours=2),
        validation_alias=named("MIMAWARI_HOT_MAX_INTERVAL", "SCHEDULER_MAX_INTERVAL"),
        description="How often an IP is crawled at the least, however light it weighs.",
    )
    hot_item_ttl_available: Duration = Field(
        default=timedelta(hours=24),
        validation_alias=named("MIMAWARI_HOT_ITEM_TTL_AVAILABLE", "ANALYZER_ITEM_TTL_AVAILABLE"),
        description="How long Redis shows an item that is on sale.",
    )
    hot_item_ttl_sold: Duration = Field(
        default=timedelta(hours=48),
        validation_alias=named("MIMAWARI_HOT_ITEM_TTL_SOLD", "ANALYZER_ITEM_TTL_SOLD"),
        description="How long Redis shows an item that was sold.",
    )
    hot_pages_on_sale: Whole = Field(
        default=5,
        ge=1,
        le=100,
        validation_alias=named("MIMAWARI_HOT_PAGES_ON_SALE", "SCHEDULER_PAGES_ON_SALE"),
        description="How many pages of what is on sale a crawl reads.",
    )
    hot_pages_sold: Whole = Field(
        default=5,
        ge=1,
        le=100,
        validation_alias=named("MIMAWARI_HOT_PAGES_SOLD", "SCHEDULER_PAGES_SOLD"),
        description="How many pages of what was sold a crawl reads.",
    )
    hot_rule: Literal["spec", "fill"] = Field(
        default="spec",
        validation_alias=named("MIMAWARI_HOT_RULE"),
        description="How a crawl changes the weight of its IP.",
    )
    hot_keep_hourly: Duration = Field(
        default=timedelta(days=30),
        ge=timedelta(days=8),
        validation_alias=named("MIMAWARI_HOT_KEEP_HOURLY"),
        description="How long the figures of hours and the record of crawls are kept; at least 8d.",
    )
    hot_keep_daily: Duration = Field(
        default=timedelta(days=365),
        ge=timedelta(days=40),
        validation_alias=named("MIMAWARI_HOT_KEEP_DAILY"),
        description="How long the figures of days, and closed alerts, are kept; at least 40d.",
    )
    hot_keep_weekly: Duration = Field(
        default=timedelta(days=730),
        validation_alias=named("MIMAWARI_HOT_KEEP_WEEKLY"),
        description="How long the figures of weeks are kept; those of months are kept for ever.",
    )
    hot_keep_items: Duration = Field(
        default=timedelta(days=90),
        ge=timedelta(days=40),
        validation_alias=named("MIMAWARI_HOT_KEEP_ITEMS"),
        description="How long an item is remembered after it was seen last; at least 40d.",
    )
    hot_alert_outflow: Whole = Field(
        default=50,
        ge=1,
        le=1_000_000,
        validation_alias=named("MIMAWARI_HOT_ALERT_OUTFLOW"),
        description="So many sold in an hour are worth an alert.",
    )
    hot_alert_liquidity_low: float = Field(
        default=0.3,
        ge=0,
        le=1000,
        validation_alias=named("MIMAWARI_HOT_ALERT_LIQUIDITY_LOW"),
        description="Fewer sold for each one listed are worth an alert.",
    )
    hot_alert_liquidity_high: float = Field(
        default=2.0,
        ge=0,
        le=1000,
        validation_alias=named("MIMAWARI_HOT_ALERT_LIQUIDITY_HIGH"),
        description="More sold for each one listed are worth an alert.",
    )
    hot_alert_price_drop: float = Field(
        default=0.2,
        gt=0,
        lt=1,
        validation_alias=named("MIMAWARI_HOT_ALERT_PRICE_DROP"),
        description="A median price this share under the usual one is worth an alert.",
    )
    hot_alert_samples: Whole = Field(
        default=10,
        ge=1,
        le=1_000_000,
        validation_alias=named("MIMAWARI_HOT_ALERT_SAMPLES"),
        description="Fewer items than this say nothing about liquidity or price.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> "HotSettings":
        if self.hot_min_interval > self.hot_max_interval:
            raise ValueError("MIMAWARI_HOT_MIN_INTERVAL is longer than MIMAWARI_HOT_MAX_INTERVAL")
        return self
