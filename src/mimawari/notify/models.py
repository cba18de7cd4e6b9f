"""Whom we notify, of what, and what was told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

LANGUAGES = ("ja", "en")


class How(StrEnum):
    """When a target is told: event by event, together with others, or once a day."""

    AT_ONCE = "at_once"
    GROUPED = "grouped"
    DAILY = "daily"


class SendState(StrEnum):
    """What became of a message."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


USUAL_SPAN = timedelta(minutes=30)
USUAL_AT = "08:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a target is told, and how; no watch and no kind named means all of them."""

    url: str
    """A secret, or where it is: env:NAME or file:PATH."""
    watches: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    how: How = How.AT_ONCE
    span: timedelta = USUAL_SPAN
    daily_at: str = USUAL_AT
    language: str = "ja"
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Whom we notify."""

    id: int
    name: str
    setting: Setting
    changed_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event that anybody may be told of, and the watches that it is of."""

    id: str
    kind: str
    watches: tuple[str, ...]
    body: Mapping[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """One message to one target."""

    id: str
    target_id: int
    events: int
    state: SendState
    attempts: int
    reason: str | None
    report: str | None
    created_at: datetime
    ended_at: datetime | None
