"""Commands of the books watch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from typing import Annotated, Any

import typer

from mimawari import log, show
from mimawari.edges.awaiting import interruptible
from mimawari.edges.progress import open_bars
from mimawari.edges.system import Json, System, run
from mimawari.watches.books import actions, queries
from mimawari.watches.books.actions import Standing, Tell
from mimawari.watches.books.cli import doctor, jobs
from mimawari.watches.books.cli import mail as cli_mail
from mimawari.watches.books.cli.cells import stopped
from mimawari.watches.books.mailing import Mail, MailState
from mimawari.watches.books.models import Run, StopReason

app = typer.Typer(help="New books from Google Books, mailed as a digest.", no_args_is_help=True)
app.add_typer(jobs.app, name="job")
app.add_typer(cli_mail.app, name="mail")
app.command(name="doctor")(doctor.doctor)


@app.command(name="run-due")
def run_due(
    context: typer.Context,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Collect, but mail nothing; due jobs stay due.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Run all that are enabled, due or not.")
    ] = False,
    json: Json = False,
) -> None:
    """Run the jobs that are due, wait for them, and mail what is new."""

    async def work(opened: System) -> tuple[list[Standing], list[Mail]]:
        due = await actions.find_due(opened, is_forced=force)
        for line in actions.skip_lines(due):
            show.complaints.print(f"[WARN]{line}", markup=False, soft_wrap=True, highlight=False)
        if not due.jobs:
            return [], []
        log.tell_plainly("books")
        since = opened.clock.now()
        async with actions.at_work(opened):
            started = await actions.start(opened, due.jobs, is_dry=dry_run)
            with _bars(started, opened.settings.zone) as tell:
                ended = await actions.follow(opened, started, tell)
            mails = [] if dry_run else await actions.wait_for_mail(opened, ended, since)
        return ended, mails

    with interruptible("`mimawari books job ls` tells how it stands"):
        ended, mails = run(context, work)
    if json:
        told = [{"job": one.job.name, "run": one.run, "later": one.later, "failed": one.failed}
                for one in ended]  # fmt: skip
        show.console.print_json(show.as_json({"runs": told, "mails": mails}))
    else:
        _show(ended, mails)
    if any(_is_bad(one) for one in ended) or any(_is_lost(one) for one in mails):
        raise typer.Exit(1)


def _is_bad(one: Standing) -> bool:
    return one.failed is not None or bool(one.run and one.run.stop_reason is StopReason.ERROR)


def _is_lost(mail: Mail) -> bool:
    return mail.state in {MailState.FAILED, MailState.UNCONFIRMED}


@contextmanager
def _bars(started: Sequence[Standing], zone: tzinfo) -> Iterator[Tell]:
    """Show how far each run has come of the books it may collect."""
    with open_bars() as bars:
        tasks = {
            one.run_id: bars.add_task(show.plain(one.job.name, most=24), total=one.job.max_per_run)
            for one in started
        }

        def tell(one: Standing) -> None:
            done = one.run.collected if one.run else 0
            bars.update(tasks[one.run_id], completed=done)
            if one.waits_for is not None and one.later is not None:
                until = show.short(one.later.next_at, zone)
                why = show.plain(one.waits_for, most=300)
                show.complaints.print(
                    f"[{one.job.name}] Waiting until {until}: {why}",
                    markup=False, soft_wrap=True, highlight=False,
                )  # fmt: skip

        yield tell


def _show(ended: Sequence[Standing], mails: Sequence[Mail]) -> None:
    columns: dict[str, Any] = {
        "job": lambda one: show.cell(one.job.name, most=24),
        "stopped": lambda one: "[red]failed[/]" if one.failed else stopped(one.run),
        "pages": lambda one: str(one.run.pages) if one.run else "–",
        "books": lambda one: f"{one.run.collected:,}" if one.run else "–",
        "new": lambda one: f"{one.run.new_books:,}" if one.run else "–",
        "next": lambda one: f"{one.run.next_index:,}" if one.run else "–",
        "of": lambda one: _total(one.run),
    }
    show.table(ended, columns, empty="No job is due. `mimawari books job ls` tells when one is.")
    for one in ended:
        if one.failed is not None:
            show.say(f"{one.job.name}: {show.plain(one.failed, most=500)}")
        elif one.later is not None:
            show.say(f"{one.job.name} goes on later: {show.plain(one.later.reason, most=500)}")
    for mail in mails:
        reason = f": {show.plain(mail.reason, most=500)}" if mail.reason else ""
        show.say(f"Digest of {mail.books} books, {mail.state}{reason}.")


def _total(run: Run | None) -> str:
    return "–" if run is None or run.total_items is None else f"{run.total_items:,}"


@app.command(name="ls")
def list_books(
    context: typer.Context,
    job: Annotated[str | None, typer.Option(help="Only what this job has found.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List books, those found last first."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await queries.list_books(reader, limit, job)
        if json:
            show.console.print_json(show.as_json(found))
            return
        zone = opened.settings.zone
        columns: dict[str, Any] = {
            "found": lambda one: show.short(one.first_seen_at, zone),
            "id": lambda one: one.book_key,
            "title": lambda one: show.cell(one.title, most=50),
            "authors": lambda one: show.cell(", ".join(one.authors), most=30),
            "published": lambda one: one.published or "–",
            "by": lambda one: show.cell(one.first_job, most=24),
        }
        show.table(found, columns, empty="No books yet. `mimawari books run-due` looks for some.")

    run(context, work)
