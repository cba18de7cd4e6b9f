"""Commands on mail: how digests stand, what the next one holds, and to send books anew."""

from pathlib import Path
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput
from mimawari.watches.books import jobs, mailing
from mimawari.watches.books.cli.cells import Name, Yes
from mimawari.watches.books.digest import write_digest
from mimawari.watches.books.mailing import Mail, MailState

app = typer.Typer(help="How digests stand, and what the next one holds.", no_args_is_help=True)

SHOWN = 20
STYLES = {
    MailState.PENDING: "yellow",
    MailState.ENDING: "yellow",
    MailState.SENT: "green",
    MailState.UNCONFIRMED: "red",
    MailState.FAILED: "red",
}


@app.command()
def status(
    context: typer.Context,
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at the most.")] = SHOWN,
    json: Json = False,
) -> None:
    """List digests, newest first, and how many books wait for the next."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await mailing.list_mails(reader, limit)
            waiting = await mailing.count_waiting(reader, opened.settings)
            following = len(await mailing.list_waiting(reader, opened.settings))
        why_not = mailing.why_not(opened.settings)
        if json:
            told = {"mails": found, "waiting": waiting, "next": following, "why_not": why_not}
            show.console.print_json(show.as_json(told))
            return
        _show_mails(opened, found)
        some = "" if following == waiting else f", which has room for {following:,} of them"
        show.say(f"{waiting:,} books wait for the next digest{some}.")
        if why_not is not None:
            show.say(f"No mail is sent: {why_not}.")

    run(context, work)


def _show_mails(opened: System, found: list[Mail]) -> None:
    zone = opened.settings.zone
    columns: dict[str, Any] = {
        "written": lambda one: show.short(one.created_at, zone),
        "to": lambda one: show.cell(", ".join(one.recipients), most=40),
        "books": lambda one: str(one.books),
        "state": lambda one: f"[{STYLES[one.state]}]{one.state}[/]",
        "since": lambda one: show.short(one.changed_at, zone),
        "tries": lambda one: str(one.attempts),
        "reason": lambda one: show.cell(one.reason, most=200),
    }
    show.table(found, columns, empty="No digest yet.")


@app.command()
def reset(context: typer.Context, name: Name, yes: Yes = False) -> None:
    """Forget what was mailed of a job's books, so that they are mailed again."""

    async def work(opened: System) -> None:
        async with opened.store.edit() as tx:
            await jobs.find_known(tx, name)
            if not yes:
                raise BadInput(
                    "nothing was changed; this mails all books of the job again;"
                    f" to do it: mimawari books mail reset {name} --yes"
                )
            count = await mailing.reset(tx, name)
        show.say(f"Reset {count} book(s) for job: {name}")

    run(context, work)


@app.command()
def preview(
    context: typer.Context,
    html: Annotated[Path | None, typer.Option(help="Write the mail's page to this file.")] = None,
) -> None:
    """Show what the next digests hold, as text, or as the page that a mail program shows."""

    async def work(opened: System) -> None:
        now = opened.clock.now()
        async with opened.store.read() as reader:
            waiting = await mailing.list_waiting(reader, opened.settings)
        digests = mailing.preview_digests(waiting, opened.settings, now)
        if not digests:
            show.say("Nothing waits to be mailed.")
        for number, digest in enumerate(digests):
            message = write_digest(digest)
            if html is None:
                body = message.get_body(("plain",))
                typer.echo(body.get_content() if body else "")
            elif page := message.get_body(("html",)):
                path = html if not number else html.with_stem(f"{html.stem}-{number + 1}")
                path.write_text(page.get_content(), encoding="utf-8")
                show.say(f"{len(digest.recipients)} recipients: {path}")

    run(context, work)
