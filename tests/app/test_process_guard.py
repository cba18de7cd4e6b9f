"""A process that stands still is ended with its stacks, and only what did it is set aside.

How long it takes with the usual patience, and on each role: tests/faults/test_standing_still.py.
"""

import signal
import time
from pathlib import Path

from tests.app.terminal import wait_for
from tests.faults.standing import QUICK, Blocking, blocking


def check_events(process: Blocking) -> None:
    process.put("event", a="fine", bad="regex", b="fine", c="fine")
    wait_for(lambda: any(one.startswith("aside bad") for one in process.done()))
    wait_for(lambda: sum(process.done().values()) == 4)
    assert process.ends() == 2
    assert {one for one in process.done() if not one.startswith("aside")} == {
        "event a", "event b", "event c",
    }  # fmt: skip
    assert set(process.done().values()) == {1}
    [given_up] = process.lines("delivery given up")
    assert given_up["reason"].startswith("the process stood still twice")
    stacks = [one["stack"] for one in process.lines("a process stood still and was ended")]
    assert len(stacks) == 2
    assert all("in stand_still" in stack and "in _deliver" in stack for stack in stacks)
    assert process.output().count("most recent call first") >= 2


def check_request(process: Blocking) -> None:
    process.put("event", later="fine")
    process.stand("sleep")
    process.until_up()
    [request] = process.lines("a request was in hand when the process was ended")
    assert request["what"].startswith("GET /api/blocking/stand/sleep key ")
    assert "kkkk" not in process.output()
    # The stack shows a request: no event is suspected of it.
    wait_for(lambda: process.done()["event later"] == 1)
    assert process.ends() == 3


def check_jobs(process: Blocking) -> None:
    process.put("stubborn", x="fine", bad="sleep", y="fine")
    held = "a job was in hand when the process was ended"
    wait_for(lambda: any(line["result"] == "failed" for line in process.lines(held)), 60)
    process.until_up()
    [buried] = process.ask("GET", "/api/jobs", params={"state": "failed"}).json()["jobs"]
    assert buried["args"]["name"] == "bad"
    assert buried["reason"].startswith("its process stood still twice")
    # Its kind may be tried twenty times, and a process ends over it twice.
    assert process.ends() == 5
    wait_for(lambda: process.done()["event of x"] == process.done()["event of y"] == 1)


def test_only_what_makes_a_process_stand_still_is_set_aside(tmp_path: Path) -> None:
    with blocking(tmp_path / "one", patience=QUICK) as process:
        process.until_up()
        check_events(process)
        check_request(process)
        check_jobs(process)
        process.ask("POST", "/api/blocking/thread")
        began = time.monotonic()
        assert process.stop() == 0
        assert time.monotonic() - began < 15
        assert process.lines("stopped")
    assert list((tmp_path / "data" / "running").iterdir()) == []


def test_a_process_that_is_asked_to_stop_while_it_stands_still_ends_and_stays_ended(
    tmp_path: Path,
) -> None:
    patience = {"stop_seconds": 2.0}
    with blocking(tmp_path / "one", patience=patience) as process:
        process.until_up()
        process.put("event", bad="open")
        time.sleep(0.5)
        assert process.stop() == 3
        assert process.ends() == 0
        assert "in stand_still" in process.output()


def test_a_signal_before_the_start_is_over_is_not_lost(tmp_path: Path) -> None:
    with blocking(tmp_path / "one") as process:
        wait_for((tmp_path / "data").exists)
        process.process.send_signal(signal.SIGINT)
        assert process.process.wait(30) == 0
