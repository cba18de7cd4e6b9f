"""How settings are written in the environment."""

import re
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import AfterValidator, AliasChoices, BeforeValidator, SecretStr
from pydantic_settings import NoDecode

from mimawari.errors import BadInput
from mimawari.text import parse_duration, plain_digits

LONGEST = timedelta(days=36500)


def _duration(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        # A bare number is one of seconds, as the specs write it.
        return parse_duration(f"{value}s" if value.isascii() and value.isdecimal() else value)
    except BadInput as error:
        raise ValueError(str(error)) from error


def _positive(value: timedelta) -> timedelta:
    if not timedelta(0) < value <= LONGEST:
        raise ValueError(f"must be longer than nothing and at most {LONGEST.days}d")
    return value


Duration = Annotated[timedelta, BeforeValidator(_duration), AfterValidator(_positive)]
Whole = Annotated[int, BeforeValidator(plain_digits)]


def _words(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    return tuple(word for word in (part.strip() for part in value.split(",")) if word)


def check_address(value: str) -> str:
    """Take an address without what follows its host, so that paths can be added to it."""
    if not re.fullmatch(r"https?://[^\s/?#@]+/?", value):
        raise ValueError("must be an address like https://host or http://host:port")
    return value.rstrip("/")


def check_networks(value: tuple[str, ...]) -> tuple[str, ...]:
    """Take addresses and networks, and nothing that only looks like one."""
    for word in value:
        try:
            ip_network(word)
        except ValueError as error:
            raise ValueError(
                f"{word!r} is no address or CIDR; write them like 10.0.0.7,172.16.0.0/12"
            ) from error
    return value


def _dsn(value: SecretStr) -> SecretStr:
    if not value or _is_dsn(value.get_secret_value()):
        return value
    raise ValueError("must be the DSN of a Sentry project, like https://key@host/42")


def _is_dsn(text: str) -> bool:
    try:
        # A port that is none is noticed when it is asked for.
        port = urlsplit(text).port
    except ValueError:
        return False
    return port != 0 and bool(
        re.fullmatch(r"https?://[^\s/?#@]+@[^\s/?#@]+(/[^\s/?#]+)*/[0-9]+", text)
    )


def _secret_word(value: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[\x21-\x7e]*", value.get_secret_value()):
        raise ValueError("must be one word of plain characters")
    return value


Dsn = Annotated[SecretStr, AfterValidator(_dsn)]
SecretWord = Annotated[SecretStr, AfterValidator(_secret_word)]
Words = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_words)]
Address = Annotated[str, AfterValidator(check_address)]


def named(*names: str) -> AliasChoices:
    """Name the variables that set a field, the first one ours."""
    return AliasChoices(*names)
