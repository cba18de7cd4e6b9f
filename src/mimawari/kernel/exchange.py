"""What was said to a receiver of events and what it answered, kept for people to see."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from mimawari.errors import Transient

MOST_SAID = 16_000
"""How many letters of what was sent are kept."""
MOST_ANSWERED = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One attempt as it went over the wire; what never came is None."""

    address: str
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None
    answer: str | None = None
    took_for: timedelta | None = None


class NotTaken(Transient):
    """A receiver did not take what was sent; what was said to and fro is kept."""

    def __init__(self, message: str, exchange: Exchange, *, until: datetime | None = None) -> None:
        super().__init__(message, until=until)
        self.exchange = exchange


def find_exchange(error: BaseException) -> Exchange | None:
    """Find what was said to and fro: whoever gives up does so over the error that tells."""
    told = (one for one in (error, error.__cause__) if isinstance(one, NotTaken))
    return next((one.exchange for one in told), None)
