"""Commands on jobs: add, list, show, change and remove them, and bring them in and out."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput
from mimawari.kernel.ports import Tx
from mimawari.kernel.why import Why, why
from mimawari.text import format_duration, parse_duration
from mimawari.watches.books import cursors, jobs, jobs_file, queries
from mimawari.watches.books.cli.cells import Name, Yes, place_of, stopped
from mimawari.watches.books.hashing import short_hash
from mimawari.watches.books.models import BookJob, Search
from mimawari.watches.books.queries import JobState

app = typer.Typer(help="Add, list, show, change and remove jobs.", no_args_is_help=True)
cursor_app = typer.Typer(help="Where the reading of jobs stands.", no_args_is_help=True)
app.add_typer(cursor_app, name="cursor")

SHOWN_RUNS = 5

Query = Annotated[
    list[str] | None,
    typer.Option(help="What to search for; give it again for more, one of which is to be met."),
]
Interval = Annotated[str | None, typer.Option(help="How often, like 24h.")]
MailLimit = Annotated[int | None, typer.Option(help="How many books a digest has of it at most.")]
MaxPerRun = Annotated[int | None, typer.Option(help="How many books a run collects at most.")]
PrintType = Annotated[str | None, typer.Option(help="all, books or magazines.")]
LangRestrict = Annotated[str | None, typer.Option(help="A language, like ja.")]
To = Annotated[
    list[str] | None,
    typer.Option(help="Who gets its books; give it again for more. Default: MIMAWARI_MAIL_TO."),
]


def _given(  # noqa: PLR0913 - the options of two commands, told once
    *,
    query: list[str] | None,
    interval: str | None,
    mail_limit: int | None,
    max_per_run: int | None,
    print_type: str | None,
    lang_restrict: str | None,
    to: list[str] | None,
) -> dict[str, Any]:
    """Return what was said, by the names of a search."""
    said = {
        "queries": tuple(query) if query else None,
        "every_for": parse_duration(interval) if interval is not None else None,
        "mail_limit": mail_limit,
        "max_per_run": max_per_run,
        "print_type": print_type,
        "lang_restrict": lang_restrict,
        "recipients": tuple(to) if to else None,
    }
    return {name: value for name, value in said.items() if value is not None}


@app.command()
def add(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    name: Name,
    *,
    query: Query = None,
    interval: Interval = None,
    mail_limit: MailLimit = None,
    max_per_run: MaxPerRun = None,
    print_type: PrintType = None,
    lang_restrict: LangRestrict = None,
    to: To = None,
    disabled: Annotated[bool, typer.Option("--disabled", help="Do not run it yet.")] = False,
) -> None:
    """Search for one more thing, from now on."""

    async def work(opened: System) -> None:
        given = _given(
            query=query, interval=interval, mail_limit=mail_limit, max_per_run=max_per_run,
            print_type=print_type, lang_restrict=lang_restrict, to=to,
        )  # fmt: skip
        if "queries" not in given:
            raise BadInput("say what to search for: --query 'intitle:見回り'")
        search = Search(name=name, enabled=not disabled, **given)
        async with opened.store.edit() as tx:
            await jobs.add_job(tx, search, opened.settings, opened.clock.now())
        how = "is not run yet" if disabled else "is due now"
        show.say(f"Job {name} {how}. `mimawari books run-due` runs what is due.")

    run(context, work)


@app.command()
def update(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    name: Name,
    *,
    query: Query = None,
    interval: Interval = None,
    mail_limit: MailLimit = None,
    max_per_run: MaxPerRun = None,
    print_type: PrintType = None,
    lang_restrict: LangRestrict = None,
    to: To = None,
) -> None:
    """Change what is named of a job; with other queries it begins anew."""

    async def work(opened: System) -> None:
        given = _given(
            query=query, interval=interval, mail_limit=mail_limit, max_per_run=max_per_run,
            print_type=print_type, lang_restrict=lang_restrict, to=to,
        )  # fmt: skip
        if not given:
            raise BadInput("nothing to change; `mimawari books job update --help` says what can")
        job = await _change(opened, name, **given)
        show.facts(_job_facts(job))

    run(context, work)


async def _replace(opened: System, tx: Tx, search: Search) -> None:
    now = opened.clock.now()
    await jobs.change_job(tx, search.name, lambda _: search, opened.settings, now)


async def _change(opened: System, name: str, **given: Any) -> BookJob:
    async with opened.store.edit() as tx:
        return await jobs.change_job(
            tx, name, lambda known: replace(known, **given), opened.settings, opened.clock.now()
        )


@app.command()
def enable(context: typer.Context, name: Name) -> None:
    """Run a job when it is due."""
    _switch(context, name, on=True)


@app.command()
def disable(context: typer.Context, name: Name) -> None:
    """Run a job no more; what it found stays."""
    _switch(context, name, on=False)


def _switch(context: typer.Context, name: str, *, on: bool) -> None:
    async def work(opened: System) -> None:
        await _change(opened, name, enabled=on)
        show.say(f"Job {name} is {'run when it is due' if on else 'not run any more'}.")

    run(context, work)


@app.command(name="ls")
def list_jobs(context: typer.Context, json: Json = False) -> None:
    """List the jobs: where each stands, why its last run stopped, and when it is due."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await queries.list_states(reader)
        rows = [(one, await _find_next(opened, one.job)) for one in found]
        if json:
            told = [{**asdict(one), "next": waits} for one, waits in rows]
            show.console.print_json(show.as_json(told))
            return
        _show_jobs(opened, rows)

    run(context, work)


async def _find_next(opened: System, job: BookJob) -> Why | None:
    return await why(opened.store, opened.clock, opened.watches, jobs.member_of(job.name))


def _show_jobs(opened: System, rows: Sequence[tuple[JobState, Why | None]]) -> None:
    zone = opened.settings.zone
    columns: dict[str, Any] = {
        "name": lambda row: show.cell(row[0].job.name, most=24),
        "on": lambda row: "yes" if row[0].job.enabled else "[yellow]no[/]",
        "read": lambda row: place_of(row[0].cursor, row[0].last_run),
        "books": lambda row: f"{row[0].books:,}",
        "state": lambda row: _state(row[0]),
        "last run": lambda row: show.short(row[0].job.last_run_at, zone),
        "due": lambda row: show.short(row[1].next_at, zone) if row[1] else "–",
    }
    empty = "No jobs yet. `mimawari books job add NAME --query WORDS` adds one."
    show.table(rows, columns, empty=empty)


def _state(one: JobState) -> str:
    return "[cyan]exhausted[/]" if one.is_exhausted else stopped(one.last_run)


@app.command(name="show")
def show_job(context: typer.Context, name: Name, json: Json = False) -> None:
    """Show one job whole: what it searches for, where it stands, its last runs, why it waits."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await queries.find_state(reader, name)
            runs = await queries.list_runs(reader, found.job.id, SHOWN_RUNS)
        waits = await _find_next(opened, found.job)
        if json:
            whole = {**asdict(found), "query_set_hash": found.job.query_set_hash}
            show.console.print_json(show.as_json({**whole, "runs": runs, "next": waits}))
            return
        show.facts(_job_facts(found.job) | _state_facts(opened, found, waits))
        _show_runs(opened, runs)

    run(context, work)


def _job_facts(job: BookJob) -> dict[str, str]:
    facts = {
        "name": show.cell(job.name, most=64),
        "queries": show.cell(" OR ".join(job.queries), most=2000),
        "query set": short_hash(job.query_set_hash),
        "enabled": "yes" if job.enabled else "[yellow]no[/]",
        "interval": format_duration(job.every_for),
        "a run": f"{job.max_per_run} books at the most",
        "a digest": f"{job.mail_limit} books at the most",
        "to": show.cell(", ".join(job.recipients), most=2000)
        if job.recipients
        else "those of MIMAWARI_MAIL_TO",
    }
    if job.print_type:
        facts["print type"] = job.print_type
    if job.lang_restrict:
        facts["language"] = job.lang_restrict
    return facts


def _state_facts(opened: System, found: JobState, waits: Why | None) -> dict[str, str]:
    now, zone = opened.clock.now(), opened.settings.zone
    facts = {
        "books": f"{found.books:,}",
        "read": place_of(found.cursor, found.last_run),
        "last run": show.when(found.job.last_run_at, now, zone),
    }
    if found.is_exhausted and found.cursor is not None:
        since = show.when(found.cursor.last_updated_at, now, zone)
        words = show.cell(found.last_run.words if found.last_run else None, most=300)
        again = f"`mimawari books job cursor reset {found.job.name} --yes` begins anew"
        facts |= {"exhausted": f"since {since}", "reason": words, "to go on": again}
    if waits is not None:
        at = show.when(waits.next_at, now, zone) if waits.next_at else "now"
        facts |= {"due": f"{at}: {show.cell(waits.reason, most=300)}"}
    elif not found.job.enabled:
        facts["due"] = f"`mimawari books job enable {found.job.name}` has it run"
    return facts


def _show_runs(opened: System, runs: Sequence[Any]) -> None:
    zone = opened.settings.zone
    columns: dict[str, Any] = {
        "began": lambda one: show.short(one.started_at, zone),
        "stopped": stopped,
        "pages": lambda one: str(one.pages),
        "books": lambda one: f"{one.collected:,}",
        "new": lambda one: f"{one.new_books:,}",
        "in its words": lambda one: show.cell(one.words, most=120),
    }
    show.table(runs, columns, empty="It has not run yet.")


@app.command(name="rm")
def remove(context: typer.Context, name: Name, yes: Yes = False) -> None:
    """Forget a job with its runs and cursors; its books, and what was mailed of them, stay."""

    async def work(opened: System) -> None:
        async with opened.store.edit() as tx:
            await jobs.find_known(tx, name)
            if not yes:
                raise BadInput(
                    f"this forgets {name} with its runs and cursors;"
                    f" to do it: mimawari books job rm {name} --yes"
                )
            await jobs.remove_job(tx, name)
        show.say(f"Job {name} is forgotten.")

    run(context, work)


@cursor_app.command(name="ls")
def list_cursors(context: typer.Context, json: Json = False) -> None:
    """List all cursors, also those of queries that were changed since."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await cursors.list_cursors(reader)
        if json:
            show.console.print_json(show.as_json(found))
            return
        zone = opened.settings.zone
        columns: dict[str, Any] = {
            "job": lambda one: show.cell(one.job_name, most=64),
            "query set": lambda one: short_hash(one.query_set_hash),
            "start index": lambda one: f"{one.start_index:,}",
            "exhausted": lambda one: "[cyan]yes[/]" if one.is_exhausted else "no",
            "since": lambda one: show.short(one.last_updated_at, zone),
        }
        show.table(found, columns, empty="No cursors yet; the first run of a job makes one.")

    run(context, work)


@cursor_app.command(name="reset")
def reset(context: typer.Context, name: Name, yes: Yes = False) -> None:
    """Let a job begin anew from its first page, exhausted or not."""

    async def work(opened: System) -> None:
        async with opened.store.edit() as tx:
            await jobs.find_known(tx, name)
            if not yes:
                raise BadInput(
                    "nothing was changed; this reads all from the first page again;"
                    f" to do it: mimawari books job cursor reset {name} --yes"
                )
            count = await jobs.reset_job(tx, name, opened.settings, opened.clock.now())
        show.say(f"Reset {count} cursor(s) for job: {name}")

    run(context, work)


@app.command(name="import")
def import_jobs(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A jobs.yaml; - reads standard input.")],
) -> None:
    """Add the jobs of a jobs.yaml, and change those of the same name; others stay."""

    async def work(opened: System) -> None:
        searches = jobs_file.parse_jobs(_read(file))
        now, added = opened.clock.now(), 0
        async with opened.store.edit() as tx:
            known = {job.name for job in await jobs.list_jobs(tx)}
            for search in searches:
                if search.name not in known:
                    await jobs.add_job(tx, search, opened.settings, now)
                    added += 1
                else:
                    await _replace(opened, tx, search)
        show.say(f"{added} jobs added, {len(searches) - added} changed.")

    run(context, work)


def _read(file: Path) -> str:
    raw = sys.stdin.buffer.read() if str(file) == "-" else file.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{file.name} is not in UTF-8; save it so") from error


@app.command(name="export")
def export_jobs(context: typer.Context) -> None:
    """Write all jobs as a jobs.yaml to standard output."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await jobs.list_jobs(reader)
        typer.echo(jobs_file.write_jobs(found), nl=False)

    run(context, work)
