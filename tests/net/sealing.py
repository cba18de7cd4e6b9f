"""Processes that set a seal and are killed or stopped with it."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

PROGRAM = """
import asyncio
import sys
from pathlib import Path
from mimawari.net.seal import set_seal

async def main():
    async with set_seal(Path(sys.argv[1])) as seal:
        if sys.argv[2] == "broken":
            seal.break_open()
        print("set", flush=True)
        sys.stdin.read()

asyncio.run(main())
"""
"""A program that sets a seal, and takes it away when it is told to go."""


async def start_with_seal(path: Path, *, is_broken: bool) -> Process:
    """Start a process, and return when its seal is set."""
    words = (PROGRAM, str(path), "broken" if is_broken else "whole")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", *words, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    assert await process.stdout.readline() == b"set\n"
    return process


async def kill_with_seal(path: Path, *, is_broken: bool) -> int:
    """Leave the seal of a process that is killed, and return how that ended."""
    process = await start_with_seal(path, is_broken=is_broken)
    process.kill()
    return await process.wait()
