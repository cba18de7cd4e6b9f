"""A seal tells, when its process is dead, whether the last line of a mail was written."""

import asyncio
import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest

from mimawari.errors import Transient
from mimawari.net.seal import Found, beside_the_loop, look_at_seal, set_seal
from tests.net.sealing import kill_with_seal, start_with_seal


@pytest.mark.parametrize(("is_broken", "found"), [(False, Found.WHOLE), (True, Found.BROKEN)])
async def test_the_seal_of_a_killed_process_says_how_far_it_came(
    tmp_path: Path, found: Found, *, is_broken: bool
) -> None:
    path = tmp_path / "mail" / "one.1"
    assert await kill_with_seal(path, is_broken=is_broken) == -signal.SIGKILL
    assert look_at_seal(path) is found
    # Looking changes nothing.
    assert look_at_seal(path) is found


async def test_the_seal_of_a_process_that_is_only_stopped_is_held(tmp_path: Path) -> None:
    path = tmp_path / "one.1"
    process = await start_with_seal(path, is_broken=False)
    os.kill(process.pid, signal.SIGSTOP)
    assert look_at_seal(path) is Found.HELD
    os.kill(process.pid, signal.SIGCONT)
    await process.communicate(b"")
    assert process.returncode == 0
    assert look_at_seal(path) is Found.NOTHING
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - in a coroutine


def test_a_seal_from_before_the_machine_was_started_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path / "one.1"
    path.write_bytes(b"-a boot long ago")
    assert look_at_seal(path) is Found.NOTHING


async def test_where_no_file_can_be_kept_there_is_no_seal_and_no_harm(tmp_path: Path) -> None:
    (tmp_path / "mail").write_text("not a folder")
    async with set_seal(tmp_path / "mail" / "one.1") as made:
        assert made is None
    assert look_at_seal(tmp_path / "mail" / "one.1") is Found.NOTHING


async def test_the_seal_of_another_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.1"
    async with set_seal(path) as first:
        assert first is not None
        async with set_seal(path) as second:
            assert second is None
        first.break_open()
        assert look_at_seal(path) is Found.HELD


async def test_a_disk_that_does_not_answer_holds_up_nothing_but_the_mail(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "fifo")
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.01)

    turning = asyncio.create_task(turn())
    with pytest.raises(Transient, match="did not answer"):
        # Nobody writes to it, so that reading it never ends.
        await beside_the_loop((tmp_path / "fifo").read_bytes, timedelta(milliseconds=200))
    turning.cancel()
    assert turns > 3
    os.close(os.open(tmp_path / "fifo", os.O_WRONLY | os.O_NONBLOCK))
