"""The settings of the books watch, and who gets its mail."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr
from pydantic_settings import BaseSettings

from mimawari.settings.mail import is_mail_address, is_unsubscribe
from mimawari.settings.types import Duration, SecretWord, Whole, Words, named


def _addresses(value: tuple[str, ...]) -> tuple[str, ...]:
    if not all(map(is_mail_address, value)):
        raise ValueError("must be plain mail addresses, comma-separated, like a@example.org")
    return value


def _unsubscribe(value: str) -> str:
    if value and not is_unsubscribe(value):
        raise ValueError("must be a plain mail address or an https address")
    return value


def _off(value: Any) -> Any:
    return None if value in {"", "off"} else value


class BooksSettings(BaseSettings):
    """How much is asked of Google Books, and how its books are mailed."""

    books_key: SecretWord = Field(
        default=SecretStr(""),
        validation_alias=named("MIMAWARI_BOOKS_KEY", "GOOGLE_BOOKS_API_KEY"),
        description="The API key of Google Books, which answers nobody without one.",
    )
    books_calls: Whole = Field(
        default=100,
        ge=0,
        le=1_000_000,
        validation_alias=named("MIMAWARI_BOOKS_CALLS", "DAILY_BOOKS_API_LIMIT"),
        description="How many calls a day Google Books gets at the most, over all processes.",
    )
    books_recheck_after: Annotated[Duration | None, BeforeValidator(_off)] = Field(
        default=None,
        validation_alias=named("MIMAWARI_BOOKS_RECHECK_AFTER"),
        description="After how long an exhausted job looks again for more; off means never.",
    )
    books_mail_unnumbered: bool = Field(
        default=False,
        validation_alias=named("MIMAWARI_BOOKS_MAIL_UNNUMBERED"),
        description="Whether books without an ISBN are mailed too.",
    )
    mail_to: Annotated[Words, AfterValidator(_addresses)] = Field(
        default=(),
        max_length=50,
        validation_alias=named("MIMAWARI_MAIL_TO"),
        description="Who gets mail where nobody else is named, comma-separated.",
    )
    mail_language: Literal["ja", "en"] = Field(
        default="ja",
        validation_alias=named("MIMAWARI_MAIL_LANGUAGE"),
        description="The language of mail: ja or en.",
    )
    mail_unsubscribe: Annotated[str, AfterValidator(_unsubscribe)] = Field(
        default="",
        validation_alias=named("MIMAWARI_MAIL_UNSUBSCRIBE"),
        description="Where one unsubscribes, a mail or https address; empty means the sender.",
    )
