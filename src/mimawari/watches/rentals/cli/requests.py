"""Commands that ask the site for something now: a list, or one property."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Annotated

import typer

from mimawari import show
from mimawari.edges.awaiting import interruptible
from mimawari.edges.request_job import Later, is_running
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput, Gone, NotFound, StoreDown, Transient
from mimawari.kernel.job import State
from mimawari.kernel.waiting import LOOK
from mimawari.sites.yahoo_realestate import parse_detail_url, parse_list_url
from mimawari.watches.rentals import actions, lists, queries, sync
from mimawari.watches.rentals.cli.cells import queue_facts, reason_words, soon, spinner
from mimawari.watches.rentals.cli.properties import show_property, write_property
from mimawari.watches.rentals.models import MOST_ROOMS, USUAL_ROOMS, Run
from mimawari.watches.rentals.queue_status import count_queue
from mimawari.watches.rentals.schemas.responses import DetailLaterOut, WalkLaterOut, WalkOut

CALLER = "cli"
PATIENCE = timedelta(seconds=60)
"""How long a command waits for what was asked for."""

ListUrl = Annotated[
    str, typer.Argument(metavar="URL", help="A list's address, as a browser shows it.")
]
Rooms = Annotated[int, typer.Option(min=1, max=MOST_ROOMS, help="How many rooms at the most.")]


def walk(
    context: typer.Context, url: ListUrl, limit: Rooms = USUAL_ROOMS, json: Json = False
) -> None:
    """Walk over a list, and put the rooms that are new into the queue of details."""

    async def work(opened: System) -> None:
        with _failing():
            run_id = await actions.ask_for_list(opened, url, limit, CALLER)
            until = opened.clock.now() + PATIENCE
            async with _following(opened, run_id):
                ended = await actions.wait_for_run(opened, run_id, until)
        address = parse_list_url(url, opened.settings.rentals_url)
        if json:
            await _write_walk(opened, address, run_id, ended)
        else:
            await _show_walk(opened, address, run_id, ended)

    with interruptible("`mimawari rentals stats` tells how it stands"):
        run(context, work)


@contextmanager
def _failing() -> Iterator[None]:
    """Tell what the site refused apart from what was asked wrongly, by the exit code."""
    try:
        yield
    except NotFound as error:
        raise Gone(str(error)) from error
    except BadInput as error:
        if error.code != "not_read":
            raise
        raise Transient(str(error)) from error


@asynccontextmanager
async def _following(opened: System, run_id: str) -> AsyncIterator[None]:
    with spinner("Waiting for the first page…") as tell:
        telling = asyncio.create_task(_tell_pages(opened, run_id, tell)) if tell else None
        try:
            yield
        finally:
            if telling is not None:
                telling.cancel()


async def _tell_pages(opened: System, run_id: str, tell: Callable[[str], None]) -> None:
    """Say over and over how far a walk has come; whoever waits for its end hears of errors."""
    with suppress(StoreDown):
        while True:
            async with opened.store.read() as reader:
                found = await lists.find_run(reader, run_id)
            if found is not None:
                tell(f"Read {_count(found.pages, 'page')}, {_count(found.found, 'room')} so far…")
            await opened.clock.sleep(LOOK)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


async def _write_walk(opened: System, url: str, run_id: str, ended: Run | Later) -> None:
    queue = await count_queue(opened)
    if isinstance(ended, Later):
        answer = WalkLaterOut.on(ended, run_id, queue).model_dump()
    else:
        answer = WalkOut.over(ended, url, queue).model_dump()
    show.console.print_json(show.as_json(answer))


async def _show_walk(opened: System, url: str, run_id: str, ended: Run | Later) -> None:
    async with opened.store.read() as reader:
        found = await lists.find_run(reader, run_id)
    facts = {"list": show.cell(url, most=2000)}
    if found is not None:
        facts["pages"] = f"{found.pages:,}, {found.ended_as or 'so far'}"
        facts["rooms found"] = f"{found.found:,}"
        facts["new in queue"] = f"{found.new_to_queue:,}"
        facts["known already"] = f"{found.already_known:,}"
        if found.refused:
            facts["not understood"] = f"[yellow]{found.refused:,}[/]"
    show.facts(facts | queue_facts(await queries.count_queue(opened), opened))
    if isinstance(ended, Later):
        verb = "goes on" if found else "begins"
        show.say(f"It {verb} {await _when(opened, ended)}.")
        show.say(f"`mimawari why {ended.job_id}` says how it stands.")


async def _when(opened: System, later: Later) -> str:
    """Say when something is done that was not done while we waited, and why then."""
    job = await opened.store.queue.find(later.job_id)
    if job is not None and job.state is State.PROCESSING:
        return "now: a worker is at work on it"
    if not await is_running(opened):
        return "once a worker runs; start one with `mimawari serve`"
    now, reason = opened.clock.now(), reason_words(opened, later.reason)
    if later.next_at is None or later.next_at <= now:
        return f"soon: {reason}"
    return f"at {soon(later.next_at, now, opened.settings.zone)}: {reason}"


DetailUrl = Annotated[
    str, typer.Argument(metavar="URL", help="A property's address, as a browser shows it.")
]


def scrape(context: typer.Context, url: DetailUrl, json: Json = False) -> None:
    """Read one property now, as far as the limit of details an hour lets it."""

    async def work(opened: System) -> None:
        until = opened.clock.now() + PATIENCE
        with _failing(), spinner("Reading the property…"):
            try:
                property_id, later = await actions.ask_for_detail(opened, url, CALLER, until)
            except NotFound as error:
                raise await _gone(opened, url) from error
        if later is None and json:
            await write_property(opened, property_id)
        elif later is None:
            await show_property(opened, property_id)
        elif json:
            waits = DetailLaterOut.on(later, property_id)
            show.console.print_json(show.as_json(waits.model_dump()))
        else:
            show.say(f"It is read {await _when(opened, later)}.")
            show.say(f"`mimawari rentals show {property_id}` shows it then.")

    with interruptible("`mimawari rentals stats` tells how it stands"):
        run(context, work)


async def _gone(opened: System, url: str) -> Gone:
    detail_url, property_id = parse_detail_url(url, opened.settings.rentals_url)
    async with opened.store.read() as reader:
        gone_at = await sync.find_gone_at(reader, property_id)
    since = show.when(gone_at, opened.clock.now(), opened.settings.zone)
    return Gone(f"{detail_url} is gone since {since}, as the site said; it is never asked again")
