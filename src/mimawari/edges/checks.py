"""What a doctor has looked at, and how it is shown."""

from collections.abc import Sequence
from dataclasses import dataclass

from mimawari import show


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at, and what to do where it is not as it should be."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def show_checks(checks: Sequence[Check]) -> None:
    """Show every check, and the advice where one failed."""
    columns = {
        "": lambda check: "[green]ok[/]" if check.ok else "[red]no[/]",
        "check": lambda check: check.name,
        "found": lambda check: show.cell(check.found, most=300),
        "do": lambda check: show.cell(check.advice, most=300) if check.advice else "",
    }
    show.table(checks, columns, empty="Nothing to check.")
