"""The settings of notifications: when an incident is told, and where their links lead."""

from datetime import timedelta
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field
from pydantic_settings import BaseSettings

from mimawari.settings.types import Duration, Whole, check_address, named


def _place(value: str) -> str:
    if not value:
        return value
    found = check_address(value)
    try:
        is_whole = bool(urlsplit(found).hostname) and urlsplit(found).port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise ValueError("must be an address like https://host or http://host:port")
    return found


class NotifySettings(BaseSettings):
    """When people are told what keeps failing, and how they find it."""

    incident_after: Whole = Field(
        default=3,
        ge=1,
        le=1000,
        validation_alias=named("MIMAWARI_INCIDENT_AFTER"),
        description="After how many failures in a row an incident is told.",
    )
    incident_remind: Duration = Field(
        default=timedelta(hours=24),
        validation_alias=named("MIMAWARI_INCIDENT_REMIND"),
        description="After how long one is reminded of an incident that is not over.",
    )
    public_url: Annotated[str, AfterValidator(_place)] = Field(
        default="",
        validation_alias=named("MIMAWARI_PUBLIC_URL"),
        description="Where people reach these pages: notifications link there, its host is served,"
        " https makes cookies secure. Empty: IP addresses and localhost alone.",
    )
