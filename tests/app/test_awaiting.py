"""What a command says while it waits, and how it ends by Ctrl-C."""

from datetime import UTC, datetime

import pytest
import typer

from mimawari.edges.awaiting import INTERRUPTED, Waits, interruptible

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_each_reason_is_said_once_with_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Waits(UTC)
    for reason in ("minute_limit", "minute_limit", "the site asked for a pause", None):
        waits.say("stamps", NOON, reason)
    first, *said = capsys.readouterr().err.splitlines()
    assert first == "Ctrl-C ends the waiting; what was asked for stays in the queue."
    assert [line.rpartition(": ")[2] for line in said] == [
        "minute_limit",
        "the site asked for a pause",
    ]
    assert all("stamps waits until" in line and "12:00" in line for line in said)


def test_ctrl_c_ends_the_waiting_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, interruptible("`mimawari why` tells more"):
        raise KeyboardInterrupt
    assert ended.value.exit_code == INTERRUPTED
    assert capsys.readouterr().err.strip().endswith("in the queue; `mimawari why` tells more")
