"""What may be asked of the hot watch: ids, pages, spans and forms, each refused with a sentence."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from fastapi import Path
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mimawari.columns import to_micros, to_time
from mimawari.text import plain_digits
from mimawari.watches.hot.models import LARGEST_ID, Status
from mimawari.watches.hot.reads import Board, Place

A_PAGE = 50
MOST_SEARCHED = 100

# Only days that there are: whoever goes by the description is never refused.
_DATE = (
    "(20[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))|20([02468][048]|[13579][26])-02-29)"
)
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_MOMENT = f"^{_DATE}T{_TIME}(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])$"
_PLACE = r"^[0-9]{1,16}\.([0-9a-f]{2}){0,256}$"
LINE = r"^[^\x00-\x1f\x7f-\x9f]*$"
"""Text without control characters."""


def checking(pattern: str, sentence: str, most: int | None = None) -> Callable[[str], str]:
    """Refuse text that is too long or does not match with a sentence."""
    wanted = re.compile(pattern.removeprefix("^").removesuffix("$"))

    def check(text: str) -> str:
        if (most is not None and len(text) > most) or not wanted.fullmatch(text):
            raise ValueError(sentence)
        return text

    return check


def described(pattern: str, **bounds: int) -> WithJsonSchema:
    """Describe to programs which text is taken."""
    return WithJsonSchema({"type": "string", "pattern": pattern, **bounds})


def _one_of(*numbers: int) -> Callable[[Any], Any]:
    words = {str(number): number for number in numbers}
    return lambda value: words.get(value, value) if isinstance(value, str) else value


_check_moment = checking(
    _MOMENT, "write a time of this century like 2026-01-31T15:00:00Z, with its zone"
)


def _read_moment(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return datetime.fromisoformat(_check_moment(value)).astimezone(UTC)


def write_moment(at: datetime) -> str:
    """Write a time as it is asked for: ISO, in UTC."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def read_place(text: str) -> Place:
    """Read where a page of items ended."""
    micros, _, name = text.partition(".")
    # Whatever the digits spell, it is some name to go on below.
    source_id = bytes.fromhex(name).decode("utf-8", "replace")
    return Place(first_seen_at=to_time(int(micros)), source_id=source_id)


def write_place(place: Place) -> str:
    """Write where a page of items ended, as it is asked for."""
    return f"{to_micros(place.first_seen_at)}.{place.source_id.encode().hex()}"


Id = Annotated[int, Ge(1), Le(LARGEST_ID), BeforeValidator(plain_digits)]
IpId = Annotated[Id, Path(description="An IP's id.")]
AlertId = Annotated[Id, Path(description="An alert's id.")]
SourceId = Annotated[
    str, Path(pattern="^[A-Za-z0-9_-]{1,64}$", description="An item's id, as the site has it.")
]
Most = Annotated[int, Ge(1), Le(500), BeforeValidator(plain_digits)]
Hours = Annotated[Literal[1, 24, 168], BeforeValidator(_one_of(1, 24, 168))]
Form = Literal["json", "csv"]
Moment = Annotated[datetime, BeforeValidator(_read_moment), described(_MOMENT)]
Below = Annotated[
    str,
    AfterValidator(checking(_PLACE, "give the `next` of the page before, as it was")),
    described(_PLACE),
]
_SEARCHED = f"a search has at most {MOST_SEARCHED} characters and no control characters"
Search = Annotated[
    str,
    AfterValidator(checking(LINE, _SEARCHED, MOST_SEARCHED)),
    described(LINE, maxLength=MOST_SEARCHED),
]


class Asked(BaseModel):
    """Refuses what nobody has heard of, so that a misspelt word is no silent default."""

    model_config = ConfigDict(extra="forbid")


class Paged(Asked):
    """A page of a list, or the whole of it as a file."""

    limit: Most | None = Field(
        default=None,
        description=f"How many at the most; {A_PAGE} if not said. A CSV without it holds all.",
    )
    format: Form = "json"

    @property
    def page(self) -> int:
        """How many a page holds."""
        return self.limit or A_PAGE


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
