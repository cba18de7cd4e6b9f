"""Commands on jobs."""

from typing import Annotated

import typer

from mimawari import show
from mimawari.app.commands.run import run, system
from mimawari.app.ops import System
from mimawari.edges.system import Json
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.job import JobView, State
from mimawari.text import clean

app = typer.Typer(help="List, show and bring back jobs.", no_args_is_help=True)

Most = Annotated[int, typer.Option("--limit", min=1, max=500, help="How many at the most.")]
Before = Annotated[str | None, typer.Option(help="Continue below this id.")]


async def _list(opened: System, views: list[JobView], *, json: bool, empty: str) -> None:
    if json:
        show.console.print_json(show.as_json(views))
        return
    now = opened.clock.now()
    columns = {
        "id": lambda view: view.id,
        "kind": lambda view: view.kind,
        "state": lambda view: show.state(view.state),
        "attempts": lambda view: str(view.attempts),
        "when": lambda view: show.when(view.next_at or view.ended_at, now),
        "target": lambda view: show.cell(view.target, most=40),
        "reason": lambda view: show.cell(view.reason),
    }
    show.table(views, columns, empty=empty)


@app.command(name="ls")
def list_jobs(
    state: Annotated[State | None, typer.Option(help="Only jobs in this state.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only jobs of this kind.")] = None,
    before: Before = None,
    limit: Most = 50,
    json: Json = False,
) -> None:
    """List jobs, newest first."""

    async def work() -> None:
        async with system() as opened:
            queue = opened.store.queue
            below = before and clean(before)
            views = await queue.list(limit, before=below, state=state, kind=kind and clean(kind))
            await _list(opened, views, json=json, empty="No such jobs.")

    run(work())


@app.command()
def dead(before: Before = None, limit: Most = 50, json: Json = False) -> None:
    """List the dead letters: jobs whose attempts are used up."""

    async def work() -> None:
        async with system() as opened:
            below = before and clean(before)
            views = await opened.store.queue.list(limit, before=below, state=State.FAILED)
            await _list(opened, views, json=json, empty="No dead letters. All is well.")

    run(work())


@app.command(name="show")
def show_job(job_id: str, json: Json = False) -> None:
    """Show one job whole."""

    async def work() -> None:
        async with system() as opened:
            view = await _found(opened, clean(job_id))
            if json:
                show.console.print_json(show.as_json(view))
                return
            now = opened.clock.now()
            show.facts(
                {
                    "id": view.id,
                    "kind": view.kind,
                    "state": show.state(view.state),
                    "args": show.cell(show.as_json(view.args), most=2000),
                    "target": show.cell(view.target),
                    "attempts": str(view.attempts),
                    "enqueued": show.when(view.enqueued_at, now),
                    "next": show.when(view.next_at, now),
                    "ended": show.when(view.ended_at, now),
                    "worker": show.cell(view.worker),
                    "reason": show.cell(view.reason, most=2000),
                    "blocked by": show.cell(view.blocked_by),
                    "page kept": f"{view.page_bytes} bytes" if view.page_bytes else "–",
                }
            )

    run(work())


@app.command()
def retry(job_id: str) -> None:
    """Bring a dead letter back with all its attempts."""

    async def work() -> None:
        async with system() as opened:
            view = await _found(opened, clean(job_id))
            if not await opened.store.queue.requeue(view.id):
                raise BadInput(f"the job is {view.state}; only a failed one is brought back")
            show.say(f"{view.id} waits again, with all its attempts.")

    run(work())


async def _found(opened: System, job_id: str) -> JobView:
    view = await opened.store.queue.find(job_id)
    if view is None:
        raise NotFound(f"no job goes by the id {job_id!r}; `mimawari jobs ls` lists them")
    return view
