"""Commands on saved searches: lists that are walked over again and again."""

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput, Gone, NotFound
from mimawari.kernel.job import State
from mimawari.kernel.why import Why, why
from mimawari.text import format_duration, parse_duration
from mimawari.watches.rentals import actions, lists, queries
from mimawari.watches.rentals.cli.cells import reason_words
from mimawari.watches.rentals.cli.requests import ListUrl, Rooms
from mimawari.watches.rentals.models import (
    LONGEST_EVERY,
    SHORTEST_EVERY,
    USUAL_ROOMS,
    RentalList,
    Run,
)
from mimawari.watches.rentals.schemas.responses import SearchOut

app = typer.Typer(help="Walk over lists again and again.", no_args_is_help=True)


@app.command()
def add(
    context: typer.Context,
    url: ListUrl,
    every: Annotated[str, typer.Option(help="How often, like 6h or 1d.")] = "1d",
    limit: Rooms = USUAL_ROOMS,
) -> None:
    """Save a search: walk over a list now, and again and again."""

    async def work(opened: System) -> None:
        span = parse_duration(every)
        if not SHORTEST_EVERY <= span <= LONGEST_EVERY:
            bounds = f"{format_duration(SHORTEST_EVERY)} to {format_duration(LONGEST_EVERY)}"
            raise BadInput(f"--every is from {bounds}")
        try:
            found = await actions.save_search(opened, url, limit, span)
        except NotFound as error:
            raise Gone(str(error)) from error
        often = f"every {format_duration(span)}, at most {limit:,} rooms each time"
        show.say(f"Search {found.id} is walked over as soon as a worker is free, then {often}.")

    run(context, work)


@app.command(name="ls")
def list_saved(context: typer.Context, json: Json = False) -> None:
    """List the saved searches, what they found last, and when they come next."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            saved = await lists.list_saved(reader)
            last = await queries.list_last_runs(reader, [one.id for one in saved])
        runs = {row.list_id: lists.make_run(row) for row in last}
        rows = [(one, runs.get(one.id), await _why(opened, one)) for one in saved]
        if json:
            show.console.print_json(show.as_json([_fields(*row) for row in rows]))
        else:
            _show_saved(opened, rows)

    run(context, work)


async def _why(opened: System, one: RentalList) -> Why | None:
    return await why(opened.store, opened.clock, opened.watches, lists.member_of(one.id))


def _fields(one: RentalList, last: Run | None, answer: Why | None) -> dict[str, Any]:
    next_at = answer.next_at if answer else None
    return {**SearchOut.of(one, last, next_at).model_dump(), "why": answer}


def _show_saved(opened: System, rows: Sequence[Any]) -> None:
    zone, site = opened.settings.zone, opened.settings.rentals_url
    columns = {
        "id": lambda row: str(row[0].id),
        "list": lambda row: show.cell(row[0].url.removeprefix(site), most=200),
        "every": lambda row: format_duration(row[0].every_for),
        "rooms": lambda row: f"{row[0].limit:>5,}",
        "last run": lambda row: show.short(row[0].last_run_at, zone),
        "found": lambda row: _found(row[1]),
        "next": lambda row: _next(opened, row[0], row[2]),
    }
    empty = "No saved searches. `mimawari rentals search add URL --every 6h` saves one."
    show.table(rows, columns, empty=empty)


def _found(last: Run | None) -> str:
    return "–" if last is None else f"{last.found:,}, {last.new_to_queue:,} new"


def _next(opened: System, one: RentalList, answer: Why | None) -> str:
    if one.gone_at is not None:
        return "never: the site says that it is gone"
    if answer is None:
        return "not on the schedule yet"
    if answer.state == State.PROCESSING:
        return "under way now"
    at = show.short(answer.next_at, opened.settings.zone)
    # That it waits for its time is said already by how often it comes.
    is_usual = answer.blocked_by is None and answer.job_id is None
    return at if is_usual else f"{at} {show.cell(reason_words(opened, answer.reason))}"


@app.command(name="rm")
def remove(
    context: typer.Context,
    list_id: Annotated[
        int,
        typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="The id that `search ls` shows."),
    ],
) -> None:
    """Forget a saved search; the properties that it found stay."""

    async def work(opened: System) -> None:
        if not await actions.forget_search(opened, list_id):
            raise NotFound(
                f"no saved search has the id {list_id}; `mimawari rentals search ls` lists them"
            )
        show.say(f"Search {list_id} is forgotten; the properties that it found stay.")

    run(context, work)
