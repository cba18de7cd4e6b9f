"""Commands on sessions of the pages."""

from typing import Annotated

import typer

from mimawari import show
from mimawari.app.commands.run import run, system
from mimawari.edges.system import Json
from mimawari.errors import BadInput, NotFound
from mimawari.text import clean

app = typer.Typer(help="List and end sessions of the pages.", no_args_is_help=True)


@app.command(name="ls")
def list_sessions(json: Json = False) -> None:
    """List the sessions of the pages, the most recently used first."""

    async def work() -> None:
        async with system() as opened:
            found, now = await opened.store.sessions.list(), opened.clock.now()
        if json:
            show.console.print_json(show.as_json(found))
            return
        columns = {
            "id": lambda one: one.id,
            "key": lambda one: str(one.key_number),
            "since": lambda one: show.when(one.made_at, now),
            "seen": lambda one: show.when(one.seen_at, now),
            "address": lambda one: show.cell(one.address),
            "browser": lambda one: show.cell(one.agent, most=60),
        }
        show.table(found, columns, empty="No sessions.")

    run(work())


@app.command()
def end(
    session_id: Annotated[str | None, typer.Argument(help="Which one, as `ls` has it.")] = None,
    every: Annotated[bool, typer.Option("--all", help="End all of them.")] = False,
) -> None:
    """End a session, or all of them; API keys remain valid."""

    async def work() -> int:
        if (session_id is None) is not every:
            raise BadInput("give the id of a session, which `mimawari sessions ls` lists, or --all")
        async with system() as opened:
            if session_id is None:
                return await opened.store.sessions.end_without(())
            if not await opened.store.sessions.end(clean(session_id)):
                raise NotFound(
                    f"no session goes by the id {session_id!r}; `mimawari sessions ls` lists them"
                )
            return 1

    ended = run(work())
    show.say(f"{ended} session{'' if ended == 1 else 's'} ended")
