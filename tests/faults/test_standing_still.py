"""With the usual patience, on each role: what blocks is ended, found and set aside, and no more."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.app.terminal import wait_for
from tests.faults.standing import Blocking, blocking
from tests.faults.world import FULL

pytestmark = [
    pytest.mark.skipif(not FULL, reason="each end takes 10 s of standing still: make faults"),
    pytest.mark.timeout(900),
]

WAYS = ("sleep", "open", "regex", "spin")
REST = ("api", "scheduler", "janitor")
BACK_SECONDS = 20.0


def until_ended(process: Blocking, count: int) -> None:
    wait_for(lambda: process.ends() >= count, 90)


def until_back(process: Blocking, count: int) -> None:
    """Wait until a process that stood still works again."""
    until_ended(process, count)
    began = time.monotonic()
    wait_for(lambda: len(process.lines("worker started")) > count or process.is_up())
    assert time.monotonic() - began < BACK_SECONDS


@pytest.mark.parametrize("how", WAYS)
def test_an_event_is_set_aside_alone(how: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        front = stack.enter_context(blocking(tmp_path / "front", ("api",)))
        front.until_up()
        front.put("event", a="fine", bad=how, b="fine")
        roles = ("deliverer", "api")
        process = stack.enter_context(blocking(tmp_path / "deliverer", roles))
        until_back(process, 1)
        wait_for(lambda: any(one.startswith("aside bad") for one in process.done()), 90)
        wait_for(lambda: sum(process.done().values()) == 3)
        assert process.ends() == 2
        assert set(process.done().values()) == {1}
        assert front.ends() == 0
        assert process.stop() == 0


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("role", ["worker", "monitor"])
def test_a_job_is_set_aside_after_it_was_alone(role: str, how: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        front = stack.enter_context(blocking(tmp_path / "front", (*REST, "deliverer")))
        front.until_up()
        front.put("job" if role == "worker" else role, a="fine", bad=how, b="fine")
        process = stack.enter_context(blocking(tmp_path / role, (role, "api")))
        until_back(process, 1)

        def is_buried() -> bool:
            found = front.ask("GET", "/api/jobs", params={"state": "failed"}).json()["jobs"]
            return bool(found) and "its process stood still twice" in found[0]["reason"]

        wait_for(is_buried, 300)
        wait_for(lambda: sum(front.done().values()) == 2)
        assert front.done() == {"event of a": 1, "event of b": 1}
        # Leases run out meanwhile, which counts as no such end.
        assert (process.ends(), front.ends()) == (2, 0)
        assert "in stand_still" in process.output()
        assert process.stop() == 0


@pytest.mark.parametrize("how", WAYS)
def test_a_request_is_logged_and_the_next_is_answered(how: str, tmp_path: Path) -> None:
    with blocking(tmp_path / "one") as process:
        process.until_up()
        process.stand(how)
        began = time.monotonic()
        process.until_up()
        assert time.monotonic() - began < BACK_SECONDS
        [request] = process.lines("a request was in hand when the process was ended")
        assert request["what"].startswith(f"GET /api/blocking/stand/{how} key ")
        assert process.stop() == 0


@pytest.mark.parametrize("how", WAYS)
def test_a_signal_ends_a_process_that_stands_still_within_thirty_seconds(
    how: str, tmp_path: Path
) -> None:
    with blocking(tmp_path / "one") as process:
        process.until_up()
        process.put("event", bad=how)
        time.sleep(1)
        process.stop(30)
        time.sleep(1)
        assert not process.is_up()


def test_a_process_that_is_stopped_for_a_minute_goes_on(tmp_path: Path) -> None:
    with blocking(tmp_path / "one") as process:
        process.until_up()
        tree = [process.process.pid, *children(process.process.pid)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for pid in tree:
                os.kill(pid, number)
            time.sleep(60 if number == signal.SIGSTOP else 15)
        assert process.is_up()
        assert process.ends() == 0
        assert process.stop() == 0


def children(pid: int) -> list[int]:
    """List the processes that one has begun."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in found]


def test_a_starved_machine_ends_nothing(tmp_path: Path) -> None:
    with ExitStack() as stack:
        process = stack.enter_context(blocking(tmp_path / "one"))
        process.until_up()
        for _ in range(8):
            busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(busy.wait)
            stack.callback(busy.kill)
        until = time.monotonic() + 60
        count = 0
        while time.monotonic() < until:
            process.put("job", **{f"job{count}": "fine"})
            # Work that takes less than the guard allows takes far longer on such a machine.
            process.ask("GET", "/api/blocking/compute/4")
            count += 1
        assert process.ends() == 0
        wait_for(lambda: sum(process.done().values()) == count)
        assert process.stop() == 0
