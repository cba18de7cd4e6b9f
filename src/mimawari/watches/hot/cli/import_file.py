"""The command that takes IPs from a file."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from sqlalchemy.exc import IntegrityError

from mimawari import show
from mimawari.edges.system import System, run
from mimawari.errors import BadInput
from mimawari.watches.hot import franchises, queries
from mimawari.watches.hot import import_file as importing
from mimawari.watches.hot.import_file import Imported, Parsed

LONG = 500
"""From so many rows on an import shows that it is at work."""


class Form(StrEnum):
    """How a file is written."""

    JSON = "json"
    CSV = "csv"


SUFFIXES = {".json": Form.JSON, ".csv": Form.CSV, ".tsv": Form.CSV}


def import_file(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file of JSON or CSV, in UTF-8.")],
    form: Annotated[Form | None, typer.Option("--format", help="Default: by the suffix.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Look only; change nothing.")] = False,
) -> None:
    """Add or update IPs from a file; bad rows are told, good ones kept."""

    async def work(opened: System) -> Imported:
        parsed = importing.parse(_read(file), form or _form_of(file))
        if dry_run:
            return await _foretell(opened, parsed)
        with _progress(len(parsed.good)):
            return await _save(opened, parsed)

    done = run(context, work)
    columns = {
        "line": lambda row: str(row.line),
        "what to do": lambda row: show.cell(row.message, most=500),
    }
    if done.bad:
        show.table(done.bad, columns, empty="")
    show.say(_summary(done, dry_run=dry_run))
    if done.bad:
        raise typer.Exit(1)


def _summary(done: Imported, *, dry_run: bool) -> str:
    left_out = f", {len(done.bad):,} left out as bad" if done.bad else ""
    counts = f"{done.added:,} added, {done.updated:,} updated{left_out}"
    return f"Nothing was changed; it would be: {counts}." if dry_run else f"{counts}."


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            content = opened.read(importing.MOST_BYTES + 1)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror}; give a file that can be read") from error
    if len(content) > importing.MOST_BYTES:
        raise BadInput(f"{file} is larger than 5 MiB; split it and import the parts")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise BadInput(f"{file} is not UTF-8 (line {line}); save it as UTF-8") from error


def _form_of(file: Path) -> Form:
    form = SUFFIXES.get(file.suffix.lower())
    if form is None:
        raise BadInput(f"{file} has no suffix we know; give --format json or --format csv")
    return form


async def _foretell(opened: System, parsed: Parsed) -> Imported:
    async with opened.store.read() as reader:
        watched = await franchises.find_by_keyword(reader, [new.keyword for new in parsed.good])
    return Imported(added=len(parsed.good) - len(watched), updated=len(watched), bad=parsed.bad)


async def _save(opened: System, parsed: Parsed) -> Imported:
    try:
        async with opened.store.edit() as tx:
            done = await importing.save(tx, parsed, opened.settings, opened.clock.now())
    except IntegrityError as error:
        raise BadInput(
            "somebody else has just added one of these keywords; import the file again"
        ) from error
    await queries.drop_kept(opened.store.cache)
    return done


@contextmanager
def _progress(rows: int) -> Iterator[None]:
    """Show that an import is at work; all of it is one transaction, so there is no half of it."""
    is_shown = rows >= LONG and show.complaints.is_terminal
    parts = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(
        *parts, console=show.complaints, transient=True, disable=not is_shown
    ) as progress:
        progress.add_task(f"Keeping {rows:,} IPs", total=None)
        yield
