"""Commands on the database."""

from dataclasses import asdict
from typing import Annotated

import typer

from mimawari import show
from mimawari.app import copying, ops
from mimawari.app.commands.run import run, settings
from mimawari.edges.progress import open_bars
from mimawari.edges.system import Json
from mimawari.errors import BadInput
from mimawari.kernel.clock import RealClock
from mimawari.store.sql.migrate import find_version

app = typer.Typer(help="Look after the database.", no_args_is_help=True)


@app.command()
def upgrade() -> None:
    """Bring the tables up to date; a SQLite file is copied first."""
    found = settings()

    async def work() -> None:
        store = ops.open_store(found)
        try:
            before = await find_version(store.database)
            copy = await ops.upgrade_tables(found, store)
        finally:
            await store.close()
        if before.is_current:
            show.say(f"Up to date already, at version {before.needed}.")
            return
        show.say(f"From version {before.current or 'none'} to {before.needed}.")
        if copy is not None:
            show.say(f"The copy made before is {copy}")

    run(work())


@app.command()
def info(json: Json = False) -> None:
    """Say where the database is, its version, and how many rows each table has."""
    found = settings()

    async def work() -> None:
        store = ops.open_store(found)
        try:
            version = await find_version(store.database)
            facts: dict[str, str | int | None] = {
                "database": ops.place(store),
                "version": version.current,
                "needed": version.needed,
            }
            if version.is_current:
                facts |= await copying.count_rows(store.database)
        finally:
            await store.close()
        if json:
            show.console.print_json(show.as_json(facts))
            return
        shown = {name: "none" if value is None else str(value) for name, value in facts.items()}
        show.facts({name: show.cell(value, most=2000) for name, value in shown.items()})
        if not version.is_current:
            show.say("Run `mimawari db upgrade`, or just `mimawari serve`.")

    run(work())


@app.command()
def backup() -> None:
    """Copy a SQLite database to the folder `backups` while it is in use."""
    found = settings()

    async def work() -> None:
        store = ops.open_store(found)
        try:
            name = RealClock().now().strftime("%Y%m%dT%H%M%SZ")
            with show.console.status("Copying …"):
                target = await ops.backup(found, store, name)
        finally:
            await store.close()
        show.say(f"The copy is {target}")

    run(work())


@app.command()
def copy(
    to: Annotated[str, typer.Option(help="The database to copy to, new or empty, as a URL.")],
    source: Annotated[
        str, typer.Option("--from", help="The database to copy from; the configured one if unsaid.")
    ] = "",
    json: Json = False,
) -> None:
    """Copy all rows to another database, also one of another engine, and compare them."""
    found = settings()

    async def work() -> None:
        # A Redis is filled from its database by whoever serves, and is none of this.
        alone = found.model_copy(update={"redis_url": ""})
        old = ops.open_store(alone.model_copy(update={"database_url": source} if source else {}))
        new = ops.open_store(alone.model_copy(update={"database_url": to}))
        try:
            if old.database.url == new.database.url:
                raise BadInput("that is the same database; name another one with --to")
            with open_bars() as bars:
                task = bars.add_task("rows", total=None)
                total = sum((await copying.count_rows(old.database)).values())
                bars.update(task, total=total)
                copied = await copying.copy(
                    old.database,
                    new.database,
                    lambda name, rows: bars.update(task, description=name, advance=rows),
                )
            place = ops.place(new)
        finally:
            await old.close()
            await new.close()
        _show_copied(copied, place, json=json)

    run(work())


def _show_copied(copied: list[copying.Copied], place: str, *, json: bool) -> None:
    if json:
        show.console.print_json(show.as_json([asdict(one) for one in copied]))
        return
    columns = {
        "table": lambda one: one.table,
        "rows": lambda one: f"{one.rows:,}",
        "sum": lambda one: one.digest[:16],
    }
    show.table([one for one in copied if one.rows], columns, empty="There was nothing to copy.")
    show.say(f"{sum(one.rows for one in copied):,} rows are the same in {place}.")
    show.say("Set MIMAWARI_DATABASE_URL to it and start `mimawari serve`.")
