"""Commands on the database."""

import typer
from sqlalchemy import func, select

from mimawari import show
from mimawari.app import ops
from mimawari.app.run import run, settings
from mimawari.edges.system import Json
from mimawari.kernel.clock import RealClock
from mimawari.store.sql.migrate import find_version
from mimawari.store.sql.tables import metadata

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
            if version.current is not None:
                async with store.read() as reader:
                    for table in metadata.sorted_tables:
                        query = select(func.count()).select_from(table)
                        facts[table.name] = (await reader.execute(query)).scalar_one()
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
