"""Commands on the simulated world: serve it, or judge a watch by it."""

from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mimawari import log, show
from mimawari.app.run import run, settings
from mimawari.edges.system import Json

app = typer.Typer(
    help="Serve the simulated world, or judge a watch by its truth.", invoke_without_command=True
)
check = typer.Typer(help="Run a watch on the simulated world in virtual time and judge it.")
app.add_typer(check, name="check")

Seed = Annotated[int, typer.Option(min=0, max=2**31, help="Another number makes another world.")]


@app.callback()
def serve_world(
    context: typer.Context,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0 takes a free one.")
    ] = 8085,
    seed: Seed = 1,
) -> None:
    """Serve a simulated market, rentals site and book API on this machine until stopped."""
    if context.invoked_subcommand is not None:
        return
    # A whole world takes a while to load, which no other command should wait for.
    from mimawari.app.world import run_world  # noqa: PLC0415

    run(run_world(settings(), port, seed))


@check.command()
def hot(
    seed: Seed = 1,
    days: Annotated[float, typer.Option(min=0.1, max=30, help="How many simulated days.")] = 3,
    targets: Annotated[int, typer.Option(min=1, help="How many IPs to watch.")] = 30,
    json: Json = False,
) -> None:
    """Compare the counts and the ranking of the hot watch with what is really so."""
    from mimawari.app.check_hot import check_hot  # noqa: PLC0415 - as above

    settings()
    log.configure("error")
    shown = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=show.complaints,
        transient=True,
        disable=not show.complaints.is_terminal,
    )
    with shown:
        line = shown.add_task(f"{days:g} simulated days", total=1.0)
        report = run(
            check_hot(seed, days, targets, lambda done: shown.update(line, completed=done))
        )
    if json:
        show.console.print_json(show.as_json(asdict(report)))
    else:
        columns = {
            "search": lambda one: show.cell(one.keyword),
            "inflow": lambda one: str(one.inflow),
            "truth": lambda one: str(one.true_inflow),
            "outflow": lambda one: str(one.outflow),
            "truth ": lambda one: str(one.true_outflow),
            "ok": lambda one: "[green]yes[/]" if one.ok else "[red]no[/]",
        }
        show.table(report.targets, columns, empty="No targets.")
        show.facts(
            {
                "seed": str(report.seed),
                "requests": f"{report.requests} in {report.crawls} crawls",
                "counts": "all as the truth" if not report.differing else "differ",
                "24-hour ranking": f"Spearman {report.spearman:.3f} against what happened between"
                f" our looks (0.95 or more is wanted), {report.spearman_by_clock:.3f} by the clock",
                "ok": "[green]yes[/]" if report.ok else "[red]no[/]",
            }
        )
    if not report.ok:
        raise typer.Exit(1)
