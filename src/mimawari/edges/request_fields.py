"""What may be asked of every watch: pages, moments, searches and forms, refused with a sentence."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from mimawari.text import plain_digits

A_PAGE = 50
MOST_SEARCHED = 100
LARGEST_ID = 2**31 - 1
"""What every database holds as an id of ours."""

# Only days that there are: whoever goes by the description is never refused.
_DATE = (
    "(20[0-9]{2}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)"
    "|02-(0[1-9]|1[0-9]|2[0-8]))|20([02468][048]|[13579][26])-02-29)"
)
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_MOMENT = f"^{_DATE}T{_TIME}(Z|[+-](0[0-9]|1[0-3]):[0-5][0-9])$"
_PLAIN = r"[^\x00-\x1f\x7f-\x9f]"
LINE = f"^{_PLAIN}*$"
"""Text without control characters."""
FILLED = rf"^{_PLAIN}*[^\s\x00-\x1f\x7f-\x9f]{_PLAIN}*$"
"""The same, with more than spaces in it."""
AS_IT_WAS = "give the `next` of the page before, as it was"


def checking(pattern: str, sentence: str, most: int | None = None) -> Callable[[str], str]:
    """Refuse text that is too long or does not match with a sentence."""
    wanted = re.compile(pattern.removeprefix("^").removesuffix("$"))

    def check(text: str) -> str:
        if (most is not None and len(text) > most) or not wanted.fullmatch(text):
            raise ValueError(sentence)
        return text

    return check


def filling(most: int) -> Callable[[str], str]:
    """Take text that says something, without the spaces around it; refuse other with a sentence."""
    says = f"must have 1 to {most} characters, not only spaces and no control characters"
    check = checking(FILLED, says, most)
    return lambda text: check(text).strip()


def described(pattern: str, **bounds: int) -> WithJsonSchema:
    """Describe to programs which text is taken."""
    return WithJsonSchema({"type": "string", "pattern": pattern, **bounds})


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


Id = Annotated[int, Ge(1), Le(LARGEST_ID), BeforeValidator(plain_digits)]
Most = Annotated[int, Ge(1), Le(500), BeforeValidator(plain_digits)]
Form = Literal["json", "csv"]
Moment = Annotated[datetime, BeforeValidator(_read_moment), described(_MOMENT)]
_SEARCHED = f"a search has at most {MOST_SEARCHED} characters and no control characters"
Search = Annotated[
    str,
    AfterValidator(checking(LINE, _SEARCHED, MOST_SEARCHED)),
    described(LINE, maxLength=MOST_SEARCHED),
]


class Sent(BaseModel):
    """Refuses what nobody has heard of, and what is of another kind than it should be."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _without_defaults(schema: dict[str, Any]) -> None:
    # What is not named stays; the values that stand in for it are never used.
    for field in schema["properties"].values():
        del field["default"]


class Patch(Sent):
    """Some of what may be sent; what is not named stays as it is."""

    model_config = ConfigDict(json_schema_extra=_without_defaults)


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
