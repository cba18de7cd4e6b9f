"""Commands of the prices watch."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Annotated

import typer

from mimawari import show
from mimawari.edges.awaiting import Waits, interruptible
from mimawari.edges.progress import open_bars
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import Json, System, run
from mimawari.watches.prices import actions, queries
from mimawari.watches.prices.actions import Asked, Stage, Standing
from mimawari.watches.prices.cli import market, products
from mimawari.watches.prices.cli.cells import alert_line, capped

app = typer.Typer(help="What a product is worth on Mercari.", no_args_is_help=True)
app.add_typer(products.app, name="product")
app.command(name="market")(market.show_market)

PATIENCE = timedelta(minutes=30)
"""How long the command waits for crawls: a first one may read a hundred pages."""
STAGES = {Stage.DONE: "green", Stage.FAILED: "red", Stage.WAITING: "yellow", Stage.RUNNING: "cyan"}


@app.command()
def crawl(
    context: typer.Context,
    product_id: Annotated[
        int | None,
        typer.Argument(min=1, max=LARGEST_ID, metavar="[ID]", help="Default: all enabled."),
    ] = None,
    json: Json = False,
) -> None:
    """Crawl a product now, or all that are enabled, and wait for the lists."""

    async def work(opened: System) -> list[Standing]:
        if product_id is not None:
            async with opened.store.read() as reader:
                await queries.find_known(reader, product_id)
        wanted = await actions.ask_for_crawls(opened, product_id)
        return await _follow(opened, wanted)

    with interruptible("`mimawari prices product show ID` tells how it stands"):
        ended = run(context, work)
    if json:
        from mimawari.watches.prices.schemas.responses import CrawlOut  # noqa: PLC0415 - loads slowly

        told = [CrawlOut.of(one).model_dump(by_alias=True) for one in ended]
        show.console.print_json(show.as_json({"crawls": told}))
    else:
        _show(ended)
    if any(one.stage is Stage.FAILED for one in ended):
        raise typer.Exit(1)


async def _follow(opened: System, wanted: Sequence[Asked]) -> list[Standing]:
    until = opened.clock.now() + PATIENCE
    over: set[str] = set()
    waits = Waits(opened.settings.zone)
    with open_bars() as bar:
        line = bar.add_task("waiting for the first page", total=len(wanted))
        steps: AsyncIterator[Standing] = actions.follow(opened, wanted, until)
        async for one in steps:
            if one.stage is Stage.WAITING:
                waits.say(one.asked.name, one.next_at, one.reason)
                continue
            name = show.plain(one.asked.name, most=24)
            bar.update(line, description=f"{name}: {one.pages_read or 0} pages")
            if one.is_over:
                over.add(one.asked.job_id)
                bar.update(line, completed=len(over))
    return [await actions.find_standing(opened, one) for one in wanted]


def _show(ended: Sequence[Standing]) -> None:
    columns = {
        "id": lambda one: str(one.asked.product_id),
        "product": lambda one: show.cell(one.asked.name, most=24),
        "state": lambda one: f"[{STAGES[one.stage]}]{one.stage}[/]",
        "found": lambda one: f"{one.run.found:,}" if one.run else "–",
        "new": lambda one: f"{one.run.added:,}" if one.run else "–",
        "taken out": lambda one: f"{one.run.removed:,}" if one.run else "–",
        "to look at": lambda one: f"{one.run.followed_up:,}" if one.run else "–",
        "pages": lambda one: str(one.pages_read or "–"),
        "seen": lambda one: capped(one.run) if one.run else "–",
    }
    show.table(ended, columns, empty="No product is enabled; `mimawari prices product ls`.")
    for one in ended:
        if one.reason:
            show.say(f"{one.asked.product_id}: {show.plain(one.reason, most=500)}")


@app.command()
def alerts(
    context: typer.Context,
    product: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_ID, help="Only of this product.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Those that are over too.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List what is worth telling of what is on sale, newest first."""

    async def work(opened: System) -> None:
        wanted = queries.want_alerts(opened, product, is_open=None if everything else True)
        async with opened.store.read() as reader:
            rows = await queries.list_alerts(reader, limit, None, wanted)
        if json:
            show.console.print_json(show.as_json([row._asdict() for row in rows]))
            return
        zone = opened.settings.zone
        columns = {
            "since": lambda row: show.short(row.opened_at, zone),
            "over": lambda row: show.short(row.closed_at, zone),
            "seen": lambda row: show.short(row.last_seen_at, zone),
            "product": lambda row: str(row.product_id),
            "what": lambda row: show.cell(alert_line(row), most=200),
        }
        show.table(rows, columns, empty="Nothing to tell.")

    run(context, work)
