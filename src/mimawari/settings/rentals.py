"""The settings of the rentals watch."""

from datetime import timedelta
from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from mimawari.settings.types import Duration, Whole, named

MOST_DETAILS = 5


def _gentle(count: int) -> int:
    if not 1 <= count <= MOST_DETAILS:
        raise ValueError(
            f"must be from 1 to {MOST_DETAILS}: the site blocks those who read more than"
            f" {MOST_DETAILS} details an hour, so it can be lowered but never raised"
        )
    return count


class RentalsSettings(BaseSettings):
    """How slowly listings are read, and how long what became of it is kept."""

    rentals_details_per_hour: Annotated[Whole, AfterValidator(_gentle)] = Field(
        default=MOST_DETAILS,
        validation_alias=named("MIMAWARI_RENTALS_DETAILS_PER_HOUR"),
        description=f"How many details are read in an hour; from 1 to {MOST_DETAILS}.",
    )
    rentals_rest_after: Whole = Field(
        default=0,
        ge=0,
        le=100_000,
        validation_alias=named("MIMAWARI_RENTALS_REST_AFTER"),
        description="A preventive pause comes after so many details; 0 means none.",
    )
    rentals_rest_for: Duration = Field(
        default=timedelta(hours=1),
        validation_alias=named("MIMAWARI_RENTALS_REST_FOR"),
        description="How long a preventive pause is.",
    )
    rentals_archive_after: Duration = Field(
        default=timedelta(days=3),
        validation_alias=named("MIMAWARI_RENTALS_ARCHIVE_AFTER"),
        description="When details that were read move from the queue to the archive.",
    )
    rentals_keep_failed: Duration = Field(
        default=timedelta(days=30),
        validation_alias=named("MIMAWARI_RENTALS_KEEP_FAILED"),
        description="How long the queue keeps details that failed or are gone.",
    )
