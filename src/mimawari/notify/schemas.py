"""What may be said of a notification target, by program, command, form or file."""

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from mimawari.edges.request_fields import FILLED, Patch, Sent, checking, described, filling
from mimawari.errors import BadInput
from mimawari.net.notify import MOST_URL, check_url
from mimawari.notify.models import USUAL_AT, USUAL_SPAN, How, Setting, Target
from mimawari.notify.rules import is_reference
from mimawari.text import format_duration, parse_duration

MOST_NAME = 100
MOST_WORDS = 50
SHORTEST, LONGEST = timedelta(minutes=1), timedelta(days=7)
_AT = "^([01][0-9]|2[0-3]):[0-5][0-9]$"
_WORD = "^[a-z]+(\\.[a-z_]+)?$"
_SPAN = "^([0-9]{1,5}[smhd]){1,4}$"
_URL = r"^[^\s\x00-\x1f\x7f-\x9f]+:[^\s\x00-\x1f\x7f-\x9f]+$"
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]{0,99}|file:/[^\x00-\x1f\x7f-\x9f]{1,500}")


def _check_span(text: str) -> str:
    try:
        span = parse_duration(text)
    except BadInput as error:
        raise ValueError(str(error)) from error
    if not SHORTEST <= span <= LONGEST:
        raise ValueError("must be from 1m to 7d")
    return text


def _check_url(text: str) -> str:
    if is_reference(text):
        if not _REFERENCE.fullmatch(text):
            raise ValueError("write env:NAME with a variable's name, or file:/PATH from the root")
        return text
    try:
        check_url(text)
    except BadInput as error:
        raise ValueError(str(error)) from error
    return text


Name = Annotated[
    str, AfterValidator(filling(MOST_NAME)), described(FILLED, minLength=1, maxLength=MOST_NAME)
]
Url = Annotated[
    str,
    AfterValidator(_check_url),
    Field(
        max_length=MOST_URL,
        description="An address of apprise, or env:NAME or file:PATH for where one is.",
    ),
]
Word = Annotated[
    str, AfterValidator(checking(_WORD, "write it like prices or prices.alert_opened", 64)),
    described(_WORD, maxLength=64),
]  # fmt: skip
Words = Annotated[list[Word], Field(max_length=MOST_WORDS)]
Span = Annotated[str, AfterValidator(_check_span), described(_SPAN)]
At = Annotated[str, AfterValidator(checking(_AT, "write a time of day like 08:00")), described(_AT)]
Language = Literal["ja", "en"]
Way = Literal["at_once", "grouped", "daily"]


class SettingIn(Sent):
    """What a target is told, and how."""

    url: Url
    watches: Words = Field(default=[], description="Of which watches; none means all.")
    kinds: Words = Field(default=[], description="Which events; none means all.")
    how: Way = Field(default="at_once", description="Event by event, together, or once a day.")
    span: Span = Field(default=format_duration(USUAL_SPAN), description="Together over so long.")
    daily_at: At = Field(default=USUAL_AT, description="Once a day then, in the app's zone.")
    language: Language = "ja"
    enabled: bool = True

    def to_setting(self) -> Setting:
        """Make the setting that was sent."""
        return make_setting(self.model_dump(exclude={"name"}))


class TargetIn(SettingIn):
    """A target to keep."""

    name: Name


class TargetPatch(Patch):
    """What to change of a target."""

    name: Name = ""
    url: Url = ""
    watches: Words = Field(default=[])
    kinds: Words = Field(default=[])
    how: Way = "at_once"
    span: Span = ""
    daily_at: At = ""
    language: Language = "ja"
    enabled: bool = True

    def change(self, target: Target) -> tuple[str, Setting]:
        """Say what a target is called and how it is set after the change."""
        given = self.model_dump(exclude_unset=True)
        name = given.pop("name", target.name)
        return name, make_setting({**write_setting(target.setting), **given})


def make_setting(said: dict[str, Any]) -> Setting:
    """Make a setting of what was checked."""
    return Setting(
        **{
            **said,
            "watches": tuple(sorted(set(said["watches"]))),
            "kinds": tuple(sorted(set(said["kinds"]))),
            "how": How(said["how"]),
            "span": parse_duration(said["span"]),
        }
    )


def write_setting(setting: Setting) -> dict[str, Any]:
    """Write a setting as it is sent."""
    return {
        "url": setting.url,
        "watches": list(setting.watches),
        "kinds": list(setting.kinds),
        "how": str(setting.how),
        "span": format_duration(setting.span),
        "daily_at": setting.daily_at,
        "language": setting.language,
        "enabled": setting.enabled,
    }
