"""The command line."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated

import typer

from mimawari import __version__, show
from mimawari.app import doctor
from mimawari.app.commands import db, files, jobs, sessions, sim
from mimawari.app.commands.run import fail, run, run_on_system, settings, system
from mimawari.app.http.keys import key_file
from mimawari.app.ops import System, place
from mimawari.app.process.presence import list_processes
from mimawari.app.process.restarting import run_again
from mimawari.app.roles import Role
from mimawari.edges.checks import show_checks
from mimawari.edges.system import Json
from mimawari.errors import MimawariError, NotFound
from mimawari.kernel.why import why
from mimawari.text import clean
from mimawari.watches import INSTALLED

app = typer.Typer(
    name="mimawari",
    help="Mimawari 見回り makes the rounds of public web sources and tells what changed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(db.app, name="db")
app.add_typer(jobs.app, name="jobs")
app.add_typer(sessions.app, name="sessions")
app.add_typer(sim.app, name="sim")
app.command()(files.apply)
app.command()(files.export)
for watch in INSTALLED:
    if watch.commands is not None:
        app.add_typer(watch.commands, name=watch.name)


@app.callback()
def main_command(context: typer.Context) -> None:
    """Mimawari 見回り makes the rounds of public web sources and tells what changed."""
    context.obj = run_on_system


Roles = Annotated[
    list[Role] | None,
    typer.Option("--role", help="Play only this part; give it again for more. Default: all."),
]


@app.command(name="serve")
def serve_command(role: Roles = None) -> None:
    """Run the API, scheduler, workers, janitor, deliverer and monitor until stopped."""
    run_again(partial(_serve, frozenset(role) if role else frozenset(Role)))


def _serve(roles: frozenset[Role]) -> None:
    # What serves takes a while to load, which no other command should wait for.
    from mimawari.app.process.guard import guarding  # noqa: PLC0415
    from mimawari.app.serve import serve  # noqa: PLC0415

    found = settings()

    @asynccontextmanager
    async def greeted(opened: System, address: str | None) -> AsyncIterator[None]:
        facts = {"mimawari": __version__, "API": address or "not in this process"}
        if address is not None:
            keys = "from the environment" if found.api_keys else str(key_file(found))
            facts["API keys"] = keys
        facts |= {"database": place(opened.store), "stop": "Ctrl-C"}
        show.facts({name: show.cell(value, most=2000) for name, value in facts.items()})
        yield

    with guarding() as guard:
        run(serve(found, INSTALLED, roles=roles, around=greeted, guard=guard))


@app.command()
def monitor(
    monitor_id: Annotated[str, typer.Option(envvar="MONITOR_ID", help="The monitor's id.")],
    pod: Annotated[str, typer.Option(envvar="POD_NAME", help="The pod's name.")] = "",
) -> None:
    """Run one monitor as a pod does: with the gateway's address and key, and no database."""
    from mimawari.app.monitor import run_monitor  # noqa: PLC0415 - as above
    from mimawari.app.process.guard import guarding  # noqa: PLC0415 - as above

    with guarding() as guard:
        run(run_monitor(settings(), clean(monitor_id), clean(pod), guard))


@app.command()
def demo(
    seconds: Annotated[
        float | None, typer.Option(help="Stop by itself so many seconds after it has started.")
    ] = None,
    scale: Annotated[
        float, typer.Option(min=2, max=300, help="How many seconds pass in one.")
    ] = 60,
) -> None:
    """Show all watches at work on a simulated world; needs no network and keeps nothing."""
    from mimawari.app.demo.run import run_demo  # noqa: PLC0415 - as above

    try:
        asyncio.run(run_demo(seconds, scale))
    except MimawariError as error:
        fail(error)


@app.command(name="doctor")
def doctor_command(json: Json = False) -> None:
    """Check that everything this system needs is there, and say what to do where not."""
    found = settings()
    checks = run(doctor.examine(found))
    if json:
        show.console.print_json(show.as_json(checks))
    else:
        show_checks(checks)
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def link() -> None:
    """Write a link that logs in to the pages once, within half an hour."""
    from mimawari.web.session import make_once  # noqa: PLC0415 - only this command needs it

    async def work() -> str:
        async with system() as opened:
            return await make_once(opened.store.sessions)

    found = settings()
    place = found.public_url or f"{found.scheme}://{found.host}:{found.port}"
    show.say(f"{place}/login?once={run(work())}")


@app.command(name="why")
def why_command(name: str, json: Json = False) -> None:
    """Say why a target or a job waits: for what, until when, blocked by what."""

    async def work() -> None:
        async with system() as opened:
            answer = await why(opened.store, opened.clock, opened.watches, clean(name))
            if answer is None:
                raise NotFound(
                    f"neither a target nor a job goes by the name {name!r};"
                    " `mimawari jobs ls` lists jobs"
                )
            if json:
                show.console.print_json(show.as_json(answer))
                return
            show.facts(
                {
                    "what": show.cell(answer.subject, most=200),
                    "kind": answer.kind,
                    "state": show.state(answer.state),
                    "next": show.when(answer.next_at, opened.clock.now()),
                    "reason": show.cell(answer.reason, most=500),
                    "blocked by": show.cell(answer.blocked_by),
                    "job": answer.job_id or "–",
                }
            )

    run(work())


@app.command()
def ps(json: Json = False) -> None:
    """Show which processes are alive, the parts they play, since when, and what they are at."""

    async def work() -> None:
        async with system() as opened:
            found, now = await list_processes(opened), opened.clock.now()
        if json:
            show.console.print_json(show.as_json(found))
            return
        columns = {
            "process": lambda one: show.cell(one.name),
            "": lambda one: "[green]alive[/]" if one.is_alive else "[red]silent[/]",
            "parts": lambda one: ", ".join(one.roles),
            "since": lambda one: show.when(one.started_at, now),
            "last word": lambda one: show.when(one.said_at, now),
            "at": lambda one: show.cell(", ".join(one.doing) or "–", most=200),
        }
        show.table(found, columns, empty="No process is running. Start one with `mimawari serve`.")

    run(work())


@app.command()
def version() -> None:
    """Say which version this is."""
    show.say(__version__)


def main() -> None:
    """Run the command line."""
    app()


def dre() -> None:
    """Run a command of the books watch, which calls itself by this name too."""
    books = typer.main.get_group(app).commands["books"]
    books(sys.argv[1:], prog_name="dre", obj=run_on_system)


if __name__ == "__main__":
    main()
