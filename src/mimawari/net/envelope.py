"""What is sent by mail: by which server, to whom, and what became of it."""

import ssl
from dataclasses import dataclass
from datetime import timedelta
from email.message import EmailMessage

from pydantic import SecretStr

from mimawari.errors import BadInput, JobError
from mimawari.settings import Settings
from mimawari.settings.mail import Security, is_mail_address
from mimawari.text import plain_line

DEADLINE = timedelta(seconds=60)
REPLY_FOR = timedelta(minutes=5)
"""A server may take so long to say that it has taken a mail (RFC 5321, 4.5.3.2.6)."""
MOST_SUBJECT = 200
NO_PASSWORD = SecretStr("")


def subject_of(text: str) -> str:
    """Return a text as a subject that shows just that text, and is one header."""
    # What looks like an encoded word (RFC 2047) would be decoded, line breaks included.
    return plain_line(text, most=MOST_SUBJECT).replace("=?", "=\u200b?")


class Refused(BadInput, JobError):
    """The mail is not taken and never will be as it is; nothing was delivered."""


class Unconfirmed(BadInput, JobError):
    """The whole mail was sent but no answer came: it may have been delivered, or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relay:
    """A mail server and how to speak to it; `tls` says whom to trust if not the system's own."""

    host: str
    port: int = 587
    security: Security = "starttls"
    user: str = ""
    password: SecretStr = NO_PASSWORD
    tls: ssl.SSLContext | None = None
    deadline_for: timedelta = DEADLINE
    reply_for: timedelta = REPLY_FOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """A mail with its addresses; its Message-ID stays the same when it is sent again."""

    sender: str
    recipients: tuple[str, ...]
    message: EmailMessage

    def __post_init__(self) -> None:
        """Refuse what no server could take, without repeating an address."""
        if not is_mail_address(self.sender):
            raise Refused("the sender is no plain mail address; give one like books@example.org")
        if not self.recipients:
            raise Refused("the mail has no recipient; give at least one")
        for number, recipient in enumerate(self.recipients, 1):
            if not is_mail_address(recipient):
                raise Refused(f"recipient {number} is no plain mail address; correct it")
        if not self.message["Message-ID"]:
            raise Refused("the mail has no Message-ID; give it one that stays the same")


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A recipient whom the server did not take, and what it said."""

    recipient: str
    code: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A mail that the server took, for all recipients but those refused."""

    reply: str
    refused: tuple[Refusal, ...]


def relay_of(settings: Settings) -> Relay | None:
    """Return the mail server that is set; None where no mail is to be sent."""
    if not settings.smtp_host:
        return None
    if not settings.mail_from:
        raise BadInput("MIMAWARI_MAIL_FROM is empty; set the address that mail is from")
    return Relay(
        host=settings.smtp_host,
        port=settings.smtp_port,
        security=settings.smtp_security,
        user=settings.smtp_user,
        password=settings.smtp_password,
    )
