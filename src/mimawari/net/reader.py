"""Pages are read in a process of their own, which is ended when a page is too much for it.

A parser in a thread cannot be stopped, and some pages cost it the square of their size.
"""

import asyncio
import os
import pickle
import resource
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mimawari.errors import Invalid, MimawariError

READ_SECONDS = 10
MOST_MEMORY = 2 * 1024**3
WIDTH = 8

P = ParamSpec("P")
T = TypeVar("T")


class Reader:
    """Runs parsers aside, one at a time; the event loop never waits for them."""

    def __init__(self) -> None:
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the parser returns or raise what it raises; one that takes too long fails."""
        question = pickle.dumps((parse, args, kwargs), pickle.HIGHEST_PROTOCOL)
        async with self._turn:
            answer = await self._ask(question)
        result, error = pickle.loads(answer)  # noqa: S301 - written by our own process
        if error is not None:
            raise error
        value: T = result
        return value

    async def _ask(self, question: bytes) -> bytes:
        process = await self._started()
        answer: bytes | None = None
        try:
            async with asyncio.timeout(READ_SECONDS):
                answer = await _exchange(process, question)
        except TimeoutError as error:
            raise Invalid(f"the page took longer than {READ_SECONDS} s to read") from error
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Invalid("the page ended the process that read it") from error
        finally:
            if answer is None:
                await self.close()
        return answer

    async def _started(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, stdin=PIPE, stdout=PIPE
            )
        return self._process

    async def close(self) -> None:
        """End the process; the next page starts another."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


async def _exchange(process: Process, question: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise OSError("the process has no pipes")
    process.stdin.write(len(question).to_bytes(WIDTH) + question)
    await process.stdin.drain()
    size = int.from_bytes(await process.stdout.readexactly(WIDTH))
    return await process.stdout.readexactly(size)


def _answer(question: bytes) -> bytes:
    result: Any = None
    error: MimawariError | None = None
    try:
        parse, args, kwargs = pickle.loads(question)  # noqa: S301 - written by our own process
        result = parse(*args, **kwargs)
    except MimawariError as refused:
        error = refused
    except MemoryError:
        error = Invalid("the page needs too much memory")
    return pickle.dumps((result, error), pickle.HIGHEST_PROTOCOL)


def main() -> None:
    """Read pages until nobody asks any more."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    # A terminal's Ctrl-C is for the process that asks; that one ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr
    while len(size := questions.read(WIDTH)) == WIDTH:
        question = questions.read(int.from_bytes(size))
        if len(question) < int.from_bytes(size):
            # Whoever asked died in the middle of the question.
            return
        # Should the asking process be gone, nobody else would end a page without an end.
        signal.alarm(READ_SECONDS * 2)
        answer = _answer(question)
        try:
            answers.write(len(answer).to_bytes(WIDTH) + answer)
            answers.flush()
        except BrokenPipeError:
            # Nobody waits for the answer; what is left of it must not be written at the end.
            os._exit(0)
        signal.alarm(0)


if __name__ == "__main__":
    main()
