"""Commands of the rentals watch."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated

import typer

from mimawari import show
from mimawari.edges import site_status
from mimawari.edges.request_job import is_running
from mimawari.edges.system import Json, System, run
from mimawari.errors import Wait
from mimawari.kernel.values import BreakerView, Limit
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import cleanup, lists, queries, tasks
from mimawari.watches.rentals.cleanup import Cleared
from mimawari.watches.rentals.cli import lists as cli_lists
from mimawari.watches.rentals.cli import properties, requests
from mimawari.watches.rentals.cli.cells import queue_facts, soon
from mimawari.watches.rentals.queue_status import count_queue, find_gauge
from mimawari.watches.rentals.schemas.responses import CleanupOut

app = typer.Typer(help="Rental listings, read so slowly that nobody minds.", no_args_is_help=True)
app.command(name="list")(requests.walk)
app.command()(requests.scrape)
app.command(name="ls")(properties.list_properties)
app.command(name="show")(properties.show_one)
app.command(name="changes")(properties.list_changes)
app.add_typer(cli_lists.app, name="search")

FULL, FREE = "▰", "▱"
WINDOWS = {tasks.DETAIL: "hour", tasks.LIST: "minute"}


@app.command()
def stats(context: typer.Context, json: Json = False) -> None:
    """Show the queue of details, the limits, the breaker and the next daily round."""

    async def work(opened: System) -> None:
        daily = await opened.store.schedule.find(lists.DAILY_MEMBER)
        daily_at = daily.next_at if daily else None
        if json:
            answer = {
                **(await count_queue(opened)).model_dump(),
                "details": (await find_gauge(opened)).model_dump(),
                "lists": (await site_status.find_limit(opened, tasks.LIST)).model_dump(),
                "daily_at": daily_at,
            }
            show.console.print_json(show.as_json(answer))
            return
        details, pages = [await _gauge(opened, name) for name in WINDOWS]
        view = await opened.store.breaker.find(SITE.name)
        has_worker = await is_running(opened)
        absent = "[yellow]none is running; start one with `mimawari serve`[/]"
        show.facts(
            {
                "worker": "[green]running[/]" if has_worker else absent,
                **queue_facts(await queries.count_queue(opened), opened),
                "details": _draw(opened, *details),
                "lists": _draw(opened, *pages),
                "breaker": _breaker(opened, view),
                "daily round": _daily(opened, daily_at),
            }
        )

    run(context, work)


async def _gauge(opened: System, name: str) -> tuple[Limit, int, Wait | None]:
    limit = opened.watches.limit(name)
    return limit, await opened.store.limiter.used(limit), await opened.store.limiter.peek(limit)


def _draw(opened: System, limit: Limit, used: int, wait: Wait | None) -> str:
    bar = FULL * used + FREE * (limit.count - used)
    said = f"{bar} {used} of {limit.count} used in the last {WINDOWS[limit.name]}"
    if wait is None:
        return f"{said}, next token now"
    at = soon(wait.until, opened.clock.now(), opened.settings.zone)
    held = "" if wait.reason.endswith("_limit") else f": {show.cell(wait.reason, most=200)}"
    return f"{said}, next token {at}{held}"


def _breaker(opened: System, view: BreakerView | None) -> str:
    if view is None or (view.state == "closed" and not view.failures):
        return "[green]closed[/], the site answers us"
    blocks = f"{view.failures} block{'s' * (view.failures != 1)} in a row"
    if view.state == "closed":
        return f"[yellow]closed[/], {blocks}; a light page is asked for before all else"
    until = (
        f" until {soon(view.until, opened.clock.now(), opened.settings.zone)}" if view.until else ""
    )
    return f"[red]{view.state}[/]{until}, {blocks}: {show.cell(view.reason, most=200)}"


def _daily(opened: System, at: datetime | None) -> str:
    if at is None:
        return "none before the first list; `mimawari rentals list URL` walks over one"
    return soon(at, opened.clock.now(), opened.settings.zone)


@app.command(name="cleanup")
def clean_up(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look only; change nothing.")] = False,
    json: Json = False,
) -> None:
    """Archive details that were read long ago, and forget those that failed or are gone."""

    async def work(opened: System) -> Cleared:
        clear = cleanup.count_due if dry_run else cleanup.clear
        return await clear(opened.store, opened.settings, opened.clock.now())

    cleared = run(context, work)
    if json:
        answer = CleanupOut(dry_run=dry_run, **asdict(cleared))
        show.console.print_json(show.as_json(answer.model_dump()))
        return
    done = (
        f"{cleared.archived:,} read moved to the archive, {cleared.failed:,} failed and"
        f" {cleared.permanent_fail:,} gone deleted"
    )
    show.say(f"Nothing was changed; it would be: {done}." if dry_run else f"{done}.")
