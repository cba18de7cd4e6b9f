"""The settings of mail: the server that sends it, and whom it is from."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings

from mimawari.settings.types import Whole, named

Security = Literal["starttls", "tls", "none"]
MOST_ADDRESS = 254

_LABEL = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_WORD = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAIL_ADDRESS = re.compile(rf"(?=.{{1,64}}@){_WORD}(?:\.{_WORD})*@{_DOMAIN}")
_HOST = re.compile(rf"{_DOMAIN}|(?=[^:]*:)[0-9A-Fa-f:.]{{2,45}}")
_UNSUBSCRIBE = re.compile(r"https://[!#-;=?-Z^-~]{1,900}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def is_mail_address(text: str) -> bool:
    """Say whether a text is a plain mail address that every server takes."""
    return len(text) <= MOST_ADDRESS and _MAIL_ADDRESS.fullmatch(text) is not None


def is_unsubscribe(text: str) -> bool:
    """Say whether one can unsubscribe there: a mail address, or an https one for a header."""
    return is_mail_address(text) or _UNSUBSCRIBE.fullmatch(text) is not None


def _mail_address(value: str) -> str:
    if value and not is_mail_address(value):
        raise ValueError("must be a plain mail address like books@example.org")
    return value


def _host(value: str) -> str:
    if value and not _HOST.fullmatch(value):
        raise ValueError("must be the name or address of a mail server, without a port")
    return value


def _user(value: str) -> str:
    if _CONTROL.search(value):
        raise ValueError("must have no control characters")
    return value


def _password(value: SecretStr) -> SecretStr:
    _user(value.get_secret_value())
    return value


class MailSettings(BaseSettings):
    """How mail is sent; without a server none is."""

    smtp_host: Annotated[str, AfterValidator(_host)] = Field(
        default="",
        validation_alias=named("MIMAWARI_SMTP_HOST"),
        description="The mail server that sends mail; empty means that none is sent.",
    )
    smtp_port: Whole = Field(
        default=587,
        ge=1,
        le=65535,
        validation_alias=named("MIMAWARI_SMTP_PORT"),
        description="The port of the mail server: 587 for starttls, mostly 465 for tls.",
    )
    smtp_security: Security = Field(
        default="starttls",
        validation_alias=named("MIMAWARI_SMTP_SECURITY"),
        description="How the connection is made secure: starttls, tls or none.",
    )
    smtp_user: Annotated[str, AfterValidator(_user)] = Field(
        default="",
        validation_alias=named("MIMAWARI_SMTP_USER"),
        description="The user of the mail server; empty means that it asks for none.",
    )
    smtp_password: Annotated[SecretStr, AfterValidator(_password)] = Field(
        default=SecretStr(""),
        validation_alias=named("MIMAWARI_SMTP_PASSWORD"),
        description="The user's password; it is never sent without TLS.",
    )
    mail_from: Annotated[str, AfterValidator(_mail_address)] = Field(
        default="",
        validation_alias=named("MIMAWARI_MAIL_FROM"),
        description="The address that mail is from.",
    )

    @model_validator(mode="after")
    def _no_open_password(self) -> Self:
        if self.smtp_user and self.smtp_security == "none":
            raise ValueError(
                "MIMAWARI_SMTP_SECURITY is none, but a password is never sent without TLS;"
                " set it to starttls or tls, or unset MIMAWARI_SMTP_USER"
            )
        return self
