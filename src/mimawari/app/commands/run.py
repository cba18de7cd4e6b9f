"""How a command runs: its settings, its store, and its errors as sentences."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn, TypeVar

import typer

from mimawari import log, show
from mimawari.app import ops
from mimawari.edges.system import System
from mimawari.errors import BadInput, MimawariError
from mimawari.settings import Settings, load_settings
from mimawari.watches import INSTALLED

T = TypeVar("T")

BAD_INPUT, FAILED = 2, 1


def settings() -> Settings:
    """Read the settings, or end with what is wrong with them."""
    try:
        found = load_settings()
    except BadInput as error:
        fail(error)
    log.configure(found.log_level, zone=found.zone)
    return found


def fail(error: MimawariError) -> NoReturn:
    """End with a sentence and no trace."""
    sentence = f"[red]mimawari:[/] {show.cell(str(error), most=2000)}"
    show.complaints.print(sentence, soft_wrap=True, highlight=False)
    raise typer.Exit(BAD_INPUT if isinstance(error, BadInput) else FAILED)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end."""
    try:
        return asyncio.run(work)
    except MimawariError as error:
        fail(error)
    except OSError as error:
        # A file or folder that an operator gave us; the network's errors are ours by now.
        where = error.filename or "the system"
        fail(BadInput(f"{where}: {error.strerror}; `mimawari doctor` looks at everything needed"))


def run_on_system(work: Callable[[System], Awaitable[T]]) -> T:
    """Run a watch's command on the opened system."""

    async def opened() -> T:
        async with system() as found:
            return await work(found)

    return run(opened())


@asynccontextmanager
async def system() -> AsyncIterator[ops.System]:
    """Open the system as a command sees it, quietly."""
    found = settings()
    log.configure("error", zone=found.zone)
    async with ops.opened(found, INSTALLED) as opened:
        yield opened
