"""What may be asked of the hot watch: ids, pages, spans and forms, each refused with a sentence."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from fastapi import Path
from pydantic import AfterValidator, BeforeValidator, Field

from mimawari.columns import to_micros, to_time
from mimawari.edges.request_fields import (
    AS_IT_WAS,
    LARGEST_ID,
    Asked,
    Form,
    Id,
    Moment,
    Most,
    Paged,
    Search,
    checking,
    described,
)
from mimawari.text import plain_digits
from mimawari.watches.hot.models import Status
from mimawari.watches.hot.queries import Board, Place

_PLACE = r"^[0-9]{1,16}\.([0-9a-f]{2}){0,256}$"


def _one_of(*numbers: int) -> Callable[[Any], Any]:
    words = {str(number): number for number in numbers}
    return lambda value: words.get(value, value) if isinstance(value, str) else value


def read_place(text: str) -> Place:
    """Read where a page of items ended."""
    micros, _, name = text.partition(".")
    # Whatever the digits spell, it is some name to go on below.
    source_id = bytes.fromhex(name).decode("utf-8", "replace")
    return Place(first_seen_at=to_time(int(micros)), source_id=source_id)


def write_place(place: Place) -> str:
    """Write where a page of items ended, as it is asked for."""
    return f"{to_micros(place.first_seen_at)}.{place.source_id.encode().hex()}"


IpId = Annotated[Id, Path(description="An IP's id.")]
AlertId = Annotated[Id, Path(description="An alert's id.")]
SourceId = Annotated[
    str, Path(pattern="^[A-Za-z0-9_-]{1,64}$", description="An item's id, as the site has it.")
]
Hours = Annotated[Literal[1, 24, 168], BeforeValidator(_one_of(1, 24, 168))]
Below = Annotated[str, AfterValidator(checking(_PLACE, AS_IT_WAS)), described(_PLACE)]


class IpsAsked(Paged):
    """Which IPs."""

    after: Annotated[int, Ge(0), Le(LARGEST_ID), BeforeValidator(plain_digits)] = Field(
        default=0, description="The `next` of the page before."
    )
    active: Literal["true", "false"] | None = None
    search: Search = Field(default="", description="Part of a name, a keyword or a tag.")


class HoursAsked(Paged):
    """Which hours of an IP; the last 24 if nothing is said."""

    from_at: Moment | None = Field(
        default=None, alias="from", description="From when; or the `next` of the page before."
    )
    to_at: Moment | None = Field(default=None, alias="to", description="Until before when.")


class PeriodsAsked(Asked):
    """Which days, weeks or months of an IP."""

    limit: Most = 30
    before: Moment | None = Field(default=None, description="The `next` of the page before.")


class ItemsAsked(Paged):
    """Which items of an IP."""

    status: Status | None = None
    below: Below | None = Field(default=None, description="The `next` of the page before.")


class SpanAsked(Asked):
    """How many whole hours back."""

    hours: Hours = 24


class CrawlsAsked(Asked):
    """How many crawls."""

    limit: Most = 20


class BoardAsked(Asked):
    """Which leaderboard."""

    type: Board = Board.HOT
    hours: Hours = 24
    limit: Annotated[int, Ge(1), Le(100), BeforeValidator(plain_digits)] = 10
    format: Form = "json"


class AlertsAsked(Paged):
    """Which alerts."""

    state: Literal["open", "closed", "all"] = "open"
    ip_id: Id | None = None
    before: Id | None = Field(default=None, description="The `next` of the page before.")
