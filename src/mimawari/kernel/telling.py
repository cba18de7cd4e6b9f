"""What people may be told: events that a watch emits for whoever asked to hear of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mimawari.kernel.ports import Tx

SCHEME = "tell"
DESTINATION = f"{SCHEME}:"
"""Where an event goes that is for people: to all of them who asked for its kind."""

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Telling:
    """A kind of event that people may be told, and how it is said in one line."""

    kind: str
    ja: str
    en: str
    """What its kind is called."""
    line: Callable[[Facts, str], str]
    """Says what happened in a language."""
    path: Callable[[Facts], str] = lambda _: ""
    """Names the page that shows more."""

    @property
    def watch(self) -> str:
        """The watch that tells it."""
        return self.kind.partition(".")[0]

    def name(self, language: str) -> str:
        """Say what its kind is called."""
        return self.ja if language == "ja" else self.en


def tell(tx: Tx, key: str, kind: str, body: Facts) -> None:
    """Tell an event to whoever asked for its kind; those of one key in their order."""
    tx.emit(key, kind, body, destination=DESTINATION)
