"""What a parser promises of a page that it understood; falling under it is drift."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimawari.errors import Invalid


@dataclass(frozen=True, slots=True)
class Refused:
    """An item that was on the page and could not be used, with what was wrong."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """How many of a page's items must be read, and how often each field must be filled."""

    name: str
    least_read: float = 0.5
    fewest: int = 1
    """Fewer items than these may all be odd ones, and prove nothing."""
    filled: Mapping[str, float] = field(default_factory=dict)

    def check(self, items: Sequence[Any], refused: Sequence[Refused], page: bytes) -> None:
        """Raise drift, with the page, unless the items keep the contract."""
        total = len(items) + len(refused)
        if total >= self.fewest and len(items) < self.least_read * total:
            first = refused[0]
            raise Invalid(
                f"{self.name}: {len(refused)} of {total} items could not be read"
                f" (first: {first.id}: {first.reason})",
                page=page,
            )
        for name, share in self.filled.items():
            full = sum(getattr(item, name) not in (None, "", ()) for item in items)
            if items and full < share * len(items):
                raise Invalid(
                    f"{self.name}: {name} is filled in {full} of {len(items)} items", page=page
                )
