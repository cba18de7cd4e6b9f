"""Commands of the hot watch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges import csv_export
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Reader
from mimawari.watches.hot import alerts as alerting
from mimawari.watches.hot import franchises, queries
from mimawari.watches.hot.cli import franchises as franchise_commands
from mimawari.watches.hot.cli.cells import (
    IpId,
    absent,
    alert_fields,
    find,
    folded,
    is_capped,
    level,
    sum_up,
    why_waits,
)
from mimawari.watches.hot.models import Ip
from mimawari.watches.hot.queries import Board, Ranked, Window
from mimawari.watches.hot.sync import HOUR

app = typer.Typer(help="Which anime franchises sell fastest.", no_args_is_help=True)
app.add_typer(franchise_commands.app, name="ip")

WIDE = 100
"""From so many columns of the terminal on there is room for a bar an hour."""
BARS, FEWER_BARS = 24, 12
BESIDE_NAME = 56
"""How wide all columns of a board but the name and the bars are."""
NARROWEST_NAME = 8
COLUMNS = (
    *("rank", "previous_rank", "ip_id", "name", "inflow", "outflow", "liquidity", "score"),
    *("pages_asked", "pages_read", "capped_on_sale", "capped_sold"),
)


class Hours(StrEnum):
    """How far back a leaderboard looks."""

    HOUR = "1"
    DAY = "24"
    WEEK = "168"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """An IP in its place on a board, and what it sold each hour."""

    place: Ranked
    hourly: tuple[int | None, ...]

    @property
    def ip(self) -> Ip:
        """The IP."""
        return self.place.ip

    @property
    def movement(self) -> int | None:
        """How many places it went up; None if it had none before."""
        before = self.place.previous_rank
        return None if before is None else before - self.place.rank

    @property
    def fields(self) -> dict[str, Any]:
        """What programs are told."""
        standing = self.place.standing
        return {
            "rank": self.place.rank,
            "previous_rank": self.place.previous_rank,
            "ip_id": self.ip.id,
            "name": self.ip.name,
            "inflow": standing.inflow,
            "outflow": standing.outflow,
            "liquidity": standing.liquidity,
            "score": standing.score,
            "coverage": asdict(self.ip.coverage),
        }


@app.command()
def top(
    context: typer.Context,
    board: Annotated[Board, typer.Option("--type", help="What to rank by.")] = Board.HOT,
    hours: Annotated[Hours, typer.Option(help="How many whole hours to look back.")] = Hours.DAY,
    limit: Annotated[int, typer.Option(min=1, max=queries.MOST_RANKED, help="How many.")] = 10,
    json: Json = False,
    csv: Annotated[bool, typer.Option("--csv", help="Write CSV instead of a table.")] = False,
) -> None:
    """Rank the IPs by what sold and what was listed in the last whole hours."""
    count = int(hours)

    async def work(opened: System) -> None:
        if json and csv:
            raise BadInput("there is one output only; give --json or --csv")
        window = Window.before(opened.clock.now(), count)
        async with opened.store.read() as reader:
            ranked = await _rank(reader, window, board, limit)
        if csv:
            typer.echo(_write_csv(ranked), nl=False)
        elif json:
            entries = [{**one.fields, "hourly_outflow": one.hourly} for one in ranked]
            answer = {"type": board, "hours": count, "window": window, "entries": entries}
            show.console.print_json(show.as_json(answer))
        else:
            _show_board(ranked, window, board, count)

    run(context, work)


async def _rank(reader: Reader, window: Window, board: Board, limit: int) -> list[_Row]:
    return [
        _Row(place=one, hourly=await _list_sold(reader, one.ip.id, window))
        for one in await queries.list_ranked(reader, board, window, limit)
    ]


async def _list_sold(reader: Reader, ip_id: int, window: Window) -> tuple[int | None, ...]:
    count = (window.end_at - window.start_at) // HOUR
    rows = await queries.list_hours(reader, ip_id, window.start_at, window.end_at, count)
    sold = {row.hour_at: row.outflow for row in rows}
    return tuple(sold.get(window.start_at + HOUR * place) for place in range(count))


def _write_csv(ranked: Sequence[_Row]) -> str:
    flat = [one.fields | one.fields["coverage"] for one in ranked]
    return csv_export.write_lines([COLUMNS, *([row[name] for name in COLUMNS] for row in flat)])


def _show_board(ranked: Sequence[_Row], window: Window, board: Board, count: int) -> None:
    bars = BARS if show.console.width >= WIDE else FEWER_BARS
    each = -(-count // bars)
    # A line of bars that is broken in two says nothing any more, so the name makes room.
    room = max(NARROWEST_NAME, show.console.width - BESIDE_NAME - bars)
    columns = {
        "#": lambda one: f"{one.place.rank:>3}",
        "±": lambda one: _arrow(one.movement),
        "name": lambda one: folded(one.ip.name, room),
        "sold": lambda one: f"{one.place.standing.outflow:>5,}",
        "listed": lambda one: f"{one.place.standing.inflow:>6,}",
        "liquidity": lambda one: _share(one.place.standing.liquidity),
        "score": lambda one: f"{one.place.standing.score:>6.2f}",
        f"sold each {each}h": lambda one: show.sparkline(sum_up(one.hourly, bars)),
        "seen": lambda one: _mark(one.ip),
    }
    if ranked:
        span = f"{show.short(window.start_at)} to {show.short(window.end_at)}"
        show.say(f"By {board}, {span} ({count} whole hour{'s' if count > 1 else ''})")
    empty = (
        "Nothing was counted in these hours. An IP is counted from its second crawl on;"
        " `mimawari hot ip ls` shows when they are due."
    )
    show.table(ranked, columns, empty=empty)
    for sentence in _explain(ranked):
        show.say(sentence)


def _arrow(movement: int | None) -> str:
    if not movement:
        return "–" if movement is None else "="
    return f"[green]▲{movement}[/]" if movement > 0 else f"[red]▼{-movement}[/]"


def _share(liquidity: float | None) -> str:
    return f"{liquidity:>9.2f}" if liquidity is not None else f"{'–':>9}"


def _mark(ip: Ip) -> str:
    seen = ip.coverage
    if is_capped(seen):
        return "[yellow]capped[/]"
    return "" if seen.is_whole else f"{seen.pages_read}/{seen.pages_asked}"


def _explain(ranked: Sequence[_Row]) -> list[str]:
    found = [one.ip.coverage for one in ranked]
    sentences = []
    if any(map(is_capped, found)):
        sentences.append(
            "capped: the last crawl stopped at its last page and there was more;"
            " true figures may be higher."
        )
    if any(not seen.is_whole and not is_capped(seen) for seen in found):
        sentences.append("8/10 and the like: so many pages of the last crawl could be read.")
    return sentences


@app.command()
def crawl(
    context: typer.Context,
    ip_id: IpId,
    now: Annotated[bool, typer.Option("--now", help="Do not wait for its time.")] = False,
) -> None:
    """Crawl an IP now, or say when it is crawled next."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            ip = await find(reader, ip_id)
        made = []
        if now:
            made = await opened.store.queue.put([franchises.crawl_now(ip, opened.settings)])
        name = show.plain(ip.name)
        if made:
            show.say(f"Job {made[0]} crawls {name}; `mimawari jobs show {made[0]}` says how it is.")
        else:
            show.say(f"{name}: {await _next(opened, ip)}")

    run(context, work)


async def _next(opened: System, ip: Ip) -> str:
    answer = await why_waits(opened, ip)
    if answer is None:
        return f"{absent(ip)}; `mimawari hot crawl {ip.id} --now` crawls it"
    at, reason = show.when(answer.next_at, opened.clock.now()), show.plain(answer.reason, most=200)
    if answer.job_id is not None:
        return f"job {answer.job_id} is {answer.state} already, next {at}: {reason}"
    return f"next {at}: {reason}; `mimawari hot crawl {ip.id} --now` does not wait"


@app.command()
def alerts(
    context: typer.Context,
    every: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    ack: Annotated[
        int | None, typer.Option(min=1, max=LARGEST_ID, help="Acknowledge this one.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many at the most.")] = 50,
    json: Json = False,
) -> None:
    """List what is worth knowing now, newest first."""

    async def work(opened: System) -> None:
        if ack is not None:
            await _acknowledge(opened, ack, json=json)
            return
        async with opened.store.read() as reader:
            is_open = None if every else True
            rows = await queries.list_alerts(
                reader, limit, before=None, ip_id=None, is_open=is_open
            )
        found = [alert_fields(row) for row in rows]
        if json:
            show.console.print_json(show.as_json(found))
        else:
            _show_alerts(opened, found)

    run(context, work)


def _show_alerts(opened: System, found: Sequence[Mapping[str, Any]]) -> None:
    now = opened.clock.now()
    columns = {
        "id": lambda one: str(one["id"]),
        "level": lambda one: level(one["level"]),
        "name": lambda one: show.cell(one["name"], most=40),
        "what": lambda one: show.cell(one["message"], most=200),
        "since": lambda one: show.when(one["opened_at"], now),
        "state": _alert_state,
    }
    show.table(found, columns, empty="No alerts. `--all` shows those that are over.")


def _alert_state(one: Mapping[str, Any]) -> str:
    if one["closed_at"] is not None:
        return f"over {show.short(one['closed_at'])}"
    return "acknowledged" if one["acknowledged_at"] is not None else "open"


async def _acknowledge(opened: System, alert_id: int, *, json: bool) -> None:
    now = opened.clock.now()
    async with opened.store.edit() as tx:
        row = await alerting.acknowledge(tx, alert_id, now)
    if row is None:
        raise NotFound(f"no alert has the id {alert_id}; `mimawari hot alerts --all` lists them")
    at = row.acknowledged_at
    if json:
        show.console.print_json(show.as_json({"id": alert_id, "acknowledged_at": at}))
    elif at == now:
        show.say(f"Alert {alert_id} is acknowledged.")
    else:
        show.say(f"Alert {alert_id} was acknowledged before: {show.when(at, now)}.")
