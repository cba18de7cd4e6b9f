"""Commands on the simulated world: serve it, or judge a watch by it."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from mimawari import log, show
from mimawari.app.commands.run import run, settings
from mimawari.edges.system import Json

if TYPE_CHECKING:
    from mimawari.app.judges import books as check_books
    from mimawari.app.judges import hot as check_hot
    from mimawari.app.judges import prices as check_prices
    from mimawari.app.judges import rentals as check_rentals
    from mimawari.app.judges import streams_verdict

app = typer.Typer(
    help="Serve the simulated world, or judge a watch by its truth.", invoke_without_command=True
)
check = typer.Typer(help="Run a watch on the simulated world in virtual time and judge it.")
app.add_typer(check, name="check")

T = TypeVar("T")

DAYS = "How many simulated days."
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


def _watch(what: str, begin: Callable[[Callable[[float], None]], Coroutine[Any, Any, T]]) -> T:
    """Run a check, and show people how far it is."""
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
        line = shown.add_task(what, total=1.0)
        return run(begin(lambda done: shown.update(line, completed=done)))


def _days(days: float) -> str:
    return f"{days:g} simulated days"


@check.command()
def hot(
    seed: Seed = 1,
    days: Annotated[float, typer.Option(min=0.1, max=30, help=DAYS)] = 3,
    targets: Annotated[int, typer.Option(min=1, help="How many IPs to watch.")] = 30,
    json: Json = False,
) -> None:
    """Compare the counts and the ranking of the hot watch with what is really so."""
    from mimawari.app.judges import hot as check_hot  # noqa: PLC0415 - as above

    report = _watch(
        _days(days), lambda progress: check_hot.check_hot(seed, days, targets, progress)
    )
    _judged(report, _show_hot, json=json)


def _show_hot(report: "check_hot.Report") -> None:
    columns = {
        "search": lambda one: show.cell(one.keyword),
        "inflow": lambda one: str(one.inflow),
        "truth": lambda one: str(one.true_inflow),
        "outflow": lambda one: str(one.outflow),
        "truth ": lambda one: str(one.true_outflow),
        "ok": lambda one: _yes(ok=one.ok),
    }
    show.table(report.targets, columns, empty="No targets.")
    show.facts(
        {
            "seed": str(report.seed),
            "requests": f"{report.requests} in {report.crawls} crawls",
            "counts": "all as the truth" if not report.differing else "differ",
            "24-hour ranking": f"Spearman {report.spearman:.3f} against what happened between"
            f" our looks (0.95 or more is wanted), {report.spearman_by_clock:.3f} by the clock",
            "ok": _yes(ok=report.ok),
        }
    )


@check.command()
def rentals(
    seed: Seed = 1,
    days: Annotated[float, typer.Option(min=0.5, max=30, help=DAYS)] = 3,
    json: Json = False,
) -> None:
    """Compare the changes that the rentals watch tells, and its pace, with what is really so."""
    from mimawari.app.judges import rentals as check_rentals  # noqa: PLC0415 - as above

    report = _watch(_days(days), lambda progress: check_rentals.check_rentals(seed, days, progress))
    _judged(report, _show_rentals, json=json)


def _show_rentals(report: "check_rentals.Report") -> None:
    differing = [("missing", one) for one in report.missing_examples]
    differing += [("extra", one) for one in report.extra_examples]
    columns = {
        "differs": lambda one: one[0],
        "property": lambda one: one[1].property_id,
        "kind": lambda one: one[1].kind,
        "before": lambda one: show.cell(one[1].before),
        "after": lambda one: show.cell(one[1].after),
    }
    show.table(differing, columns, empty="Every change is as the truth.")
    show.facts(
        {
            "seed": str(report.seed),
            "requests": f"{report.requests}, {report.details} of them for details;"
            f" {report.blocks} were blocked",
            "details an hour": f"{report.most_in_an_hour} at the most (5 are allowed),"
            f" {report.least_in_a_full_hour} at the least (4 or more are wanted)",
            "after 404": f"{report.asked_again_after_404} asked for again",
            "after a block": f"{report.requests_within_5_min_after_a_block} requests within 5"
            f" minutes, {report.blocked_url_within_an_hour} for the same page within an hour",
            "changes": f"{report.changes} of {report.properties} properties;"
            f" {report.missing} missing, {report.extra} extra",
            "ok": _yes(ok=report.ok),
        }
    )


@check.command()
def prices(
    seed: Seed = 1,
    days: Annotated[float, typer.Option(min=0.1, max=30, help=DAYS)] = 14,
    products: Annotated[int, typer.Option(min=1, max=20, help="How many, of the quietest.")] = 20,
    json: Json = False,
) -> None:
    """Compare the sales and the medians of the prices watch with what is really so."""
    from mimawari.app.judges import prices as check_prices  # noqa: PLC0415 - as above

    report = _watch(_days(days), lambda tell: check_prices.check_prices(seed, days, products, tell))
    _judged(report, _show_prices, json=json)


def _show_prices(report: "check_prices.Report") -> None:
    columns = {
        "differs": lambda one: one.what,
        "search": lambda one: show.cell(one.keyword),
        "item or day": lambda one: one.about,
        "ours": lambda one: show.cell(one.ours),
        "truth": lambda one: show.cell(one.truth),
    }
    show.table(report.examples, columns, empty="Every sale and every median is as the truth.")
    show.facts(
        {
            "seed": str(report.seed),
            "requests": f"{report.requests} in {report.crawls} crawls",
            "products": str(report.products),
            "sales": f"{report.sales_seen} seen; {report.missing} missing, {report.extra} extra,"
            f" {report.wrong_price} of another price, {report.wrong_day} of another time",
            "taken back": f"{report.sales_taken_back} seen sales were none any more later",
            "sold when": f"{report.exact_moment:.1%} the very moment of the purchase,"
            f" {report.same_day:.1%} its day",
            "daily medians": f"{report.medians_compared} compared,"
            f" {report.medians_differing} differ",
            "all true sales": f"{report.share_seen:.1%} of {report.sales_true} were seen",
            "ok": _yes(ok=report.ok),
        }
    )


@check.command()
def books(
    seed: Seed = 1,
    days: Annotated[float, typer.Option(min=1.5, max=30, help=DAYS)] = 8,
    json: Json = False,
) -> None:
    """Compare the books, cursors and calls of the books watch with what it was told."""
    from mimawari.app.judges import books as check_books  # noqa: PLC0415 - as above

    report = _watch(_days(days), lambda progress: check_books.check_books(seed, days, progress))
    _judged(report, _show_books, json=json)


def _show_books(report: "check_books.Report") -> None:
    columns = {
        "differs": lambda one: one.what,
        "job": lambda one: one.job,
        "when or what": lambda one: one.about,
        "ours": lambda one: show.cell(one.ours),
        "truth": lambda one: show.cell(one.truth),
    }
    show.table(report.examples, columns, empty="Every book, page and cursor is as it should be.")
    stops = ", ".join(f"{count} {reason}" for reason, count in report.stops.items())
    show.facts(
        {
            "seed": str(report.seed),
            "requests": f"{report.requests}, {report.calls} of them calls;"
            f" {report.failures} were answered with 503",
            "calls a day": f"{report.most_calls_in_a_day} at the most ({report.quota} are allowed);"
            f" {report.over_quota_days} days had more",
            "runs": f"{report.runs} of {report.jobs} jobs, {report.resets} after a reset;"
            f" stopped: {stops}",
            "pages": f"{report.pages} of {report.volumes} volumes; {report.skipped_pages} skipped,"
            f" {report.repeated_pages} repeated, {report.overfetched} asked for too much",
            "books": f"{report.books}; {report.missing} missing, {report.extra} extra",
            "cursors": f"{report.cursor_differs} differ, {report.wrong_exhausted} were exhausted"
            " wrongly",
            "stops": f"{report.wrong_stops} for another reason than was told",
            "ok": _yes(ok=report.ok),
        }
    )


@check.command()
def streams(
    seed: Seed = 1,
    streams: Annotated[int, typer.Option(min=1, max=50, help="How many to watch.")] = 20,
    json: Json = False,
) -> None:
    """Compare what is told of black-outs and silences with what every segment shows."""
    from mimawari.app.judges import streams as check_streams  # noqa: PLC0415 - as above

    what = f"{streams} simulated streams"
    report = _watch(what, lambda progress: check_streams.check_streams(seed, streams, progress))
    _judged(report, _show_streams, json=json)


def _show_streams(report: "streams_verdict.Report") -> None:
    columns = {
        "differs": lambda one: one.what,
        "stream": lambda one: one.stream,
        "incident": lambda one: one.about,
        "ours": lambda one: show.cell(one.ours),
        "truth": lambda one: show.cell(one.truth),
    }
    show.table(report.examples, columns, empty="All that was told is as the segments show it.")
    show.facts(
        {
            "seed": str(report.seed),
            "streams": f"{report.streams}; {report.requests} requests,"
            f" {report.segments} segments looked into",
            "went wrong": ", ".join(f"{count} {what}" for what, count in report.upsets.items()),
            "incidents": f"{report.incidents}, of which {report.expected} last for a threshold:"
            f" {report.alerted} told, and the ends of {report.recovered}",
            "alerts": f"{report.missing} missing, {report.false} false, {report.doubled} doubled,"
            f" {report.unrecovered} without an end",
            "starts": f"{report.wrong_start} wrong; at the most off by"
            f" {_seconds(report.most_start_error)}",
            "durations": f"{report.wrong_duration} wrong; at the most off by"
            f" {_seconds(report.most_duration_error)}",
            "delays": f"{report.late} too long; {report.most_delay:g} s at the most, which is"
            f" {report.most_delay_share:.0%} of a check interval and a segment; {report.held} kept"
            " back by what went wrong",
            "webhooks": f"{report.unverified} not verified or not once, {report.disordered} streams"
            f" out of order, {report.wrong_others} with other starts, ends or errors",
            "ok": _yes(ok=report.ok),
        }
    )


def _seconds(found: dict[str, float]) -> str:
    return ", ".join(f"{seconds:g} s ({name})" for name, seconds in found.items()) or "nothing"


def _judged(report: T, show_people: Callable[[T], None], *, json: bool) -> None:
    """Say how a check went, and end with exit code 1 if it did not go well."""
    said: Any = report
    if json:
        show.console.print_json(show.as_json(said))
    else:
        show_people(report)
    if not said.ok:
        raise typer.Exit(1)


def _yes(*, ok: bool) -> str:
    return "[green]yes[/]" if ok else "[red]no[/]"
