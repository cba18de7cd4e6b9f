"""What a page says, frozen."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Reading:
    """A number read from a page."""

    page: str
    number: int
    read_at: datetime
