"""Commands on IPs: add, list, show and remove them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from mimawari import show
from mimawari.edges.request_fields import LARGEST_ID
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput
from mimawari.kernel.ports import Reader
from mimawari.kernel.why import Why
from mimawari.text import clean, format_duration
from mimawari.watches.hot import franchises, queries, rules
from mimawari.watches.hot import import_file as importing
from mimawari.watches.hot.cli.cells import (
    IpId,
    absent,
    alert_fields,
    coverage,
    find,
    level,
    why_waits,
)
from mimawari.watches.hot.cli.import_file import import_file
from mimawari.watches.hot.models import Ip, NewIp
from mimawari.watches.hot.queries import Window
from mimawari.watches.hot.sync import HOUR, make_coverage
from mimawari.watches.hot.tables import hours, items

app = typer.Typer(help="Add, list, show, remove and import IPs.", no_args_is_help=True)
app.command(name="import")(import_file)

SHOWN_HOURS = 48
SHOWN_CRAWLS = 5
SHOWN_ALERTS = 20


@app.command()
def add(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    name: str,
    *,
    keyword: Annotated[str, typer.Option(help="What to search for. Default: the name.")] = "",
    name_en: Annotated[str, typer.Option(help="The English name.")] = "",
    weight: Annotated[float, typer.Option(help="How often to crawl, from 0.1 to 4.")] = 1.0,
    tag: Annotated[list[str] | None, typer.Option(help="A tag; give it again for more.")] = None,
    inactive: Annotated[bool, typer.Option("--inactive", help="Do not crawl it yet.")] = False,
) -> None:
    """Watch one more IP, from now on."""

    async def work(opened: System) -> None:
        texts = {"name": name, "keyword": keyword, "name_en": name_en}
        new = importing.make_new(
            {**texts, "weight": weight, "active": not inactive, "tags": tag or []}
        )
        ip = await _add(opened, new)
        await opened.store.cache.drop(queries.LEADERBOARD)
        when = "is crawled as soon as a worker is free" if ip.active else "is not crawled yet"
        show.say(f"IP {ip.id}, {show.plain(ip.name)}, {when}.")

    run(context, work)


async def _add(opened: System, new: NewIp) -> Ip:
    shown = show.plain(new.keyword)
    try:
        async with opened.store.edit() as tx:
            watched = await franchises.find_by_keyword(tx, [new.keyword])
            if watched:
                raise BadInput(
                    f"IP {watched[new.keyword].id} has the keyword {shown!r} already;"
                    " choose another one with --keyword"
                )
            (ip,) = await franchises.add_ips(tx, [new], opened.settings, opened.clock.now())
            return ip
    except IntegrityError as error:
        raise BadInput(
            f"somebody else has just added the keyword {shown!r}; see `mimawari hot ip ls`"
        ) from error


@app.command(name="ls")
def list_ips(
    context: typer.Context,
    search: Annotated[str, typer.Option(help="Only those whose names or tags hold this.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at the most.")] = 50,
    after: Annotated[int, typer.Option(min=0, max=LARGEST_ID, help="Go on after this id.")] = 0,
    json: Json = False,
) -> None:
    """List the IPs by id."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await queries.list_ips(reader, limit, after, search=clean(search))
        rows = [(ip, await why_waits(opened, ip)) for ip in found]
        if json:
            show.console.print_json(show.as_json([_fields(opened, *row) for row in rows]))
            return
        _show_ips(opened, rows)
        if len(found) == limit:
            show.say(f"There may be more: `mimawari hot ip ls --after {found[-1].id}`")

    run(context, work)


def _every(opened: System, ip: Ip) -> timedelta:
    return rules.interval(ip.weight, franchises.pace_of(opened.settings))


def _fields(opened: System, ip: Ip, answer: Why | None) -> dict[str, Any]:
    every = _every(opened, ip).total_seconds()
    return {**asdict(ip), "every_seconds": every, "why": answer}


def _show_ips(opened: System, rows: Sequence[tuple[Ip, Why | None]]) -> None:
    columns = {
        "id": lambda row: str(row[0].id),
        "name": lambda row: show.cell(row[0].name, most=40),
        "keyword": lambda row: show.cell(row[0].keyword, most=40),
        "weight": lambda row: f"{row[0].weight:>6g}",
        "every": lambda row: format_duration(_every(opened, row[0])),
        "last crawled": lambda row: show.short(row[0].last_crawled_at),
        "next": lambda row: _next(*row),
        "coverage": lambda row: coverage(row[0].coverage),
    }
    empty = "No such IPs. `mimawari hot ip add NAME` or `mimawari hot ip import FILE` adds some."
    show.table(rows, columns, empty=empty)


def _next(ip: Ip, answer: Why | None) -> str:
    if answer is None:
        return absent(ip)
    return f"{show.short(answer.next_at)} {show.cell(answer.reason)}"


@app.command(name="show")
def show_ip(context: typer.Context, ip_id: IpId, json: Json = False) -> None:
    """Show one IP whole: its facts, its last hours and crawls, its alerts, why it waits."""

    async def work(opened: System) -> None:
        window = Window.before(opened.clock.now(), SHOWN_HOURS)
        async with opened.store.read() as reader:
            ip = await find(reader, ip_id)
            seen = await queries.list_hours(
                reader, ip_id, window.start_at, window.end_at, SHOWN_HOURS
            )
            crawls = await queries.list_crawls(reader, ip_id, SHOWN_CRAWLS)
            told = await queries.list_alerts(
                reader, SHOWN_ALERTS, before=None, ip_id=ip_id, is_open=True
            )
        answer = await why_waits(opened, ip)
        found = [alert_fields(row) for row in told]
        if json:
            whole = {
                **_fields(opened, ip, answer),
                "hours": [row._asdict() for row in seen],
                "crawls": [_crawl_fields(row) for row in crawls],
                "alerts": found,
            }
            show.console.print_json(show.as_json(whole))
            return
        show.facts(_facts(opened, ip, answer) | _flows(window, seen))
        _show_crawls(opened, crawls)
        _show_alerts(opened, found)

    run(context, work)


def _facts(opened: System, ip: Ip, answer: Why | None) -> dict[str, str]:
    now = opened.clock.now()
    facts = {
        "id": str(ip.id),
        "name": show.cell(ip.name, most=200),
        "English name": show.cell(ip.name_en, most=200),
        "keyword": show.cell(ip.keyword, most=200),
        "tags": show.cell(", ".join(ip.tags), most=2000),
        "active": "yes" if ip.active else "no",
        "weight": f"{ip.weight:g}, so every {format_duration(_every(opened, ip))}",
        "last crawled": show.when(ip.last_crawled_at, now),
        "coverage": coverage(ip.coverage),
        "counted since": _since(ip, now),
    }
    if ip.failures:
        facts["failures"] = f"{ip.failures} in a row: {show.cell(ip.last_error, most=500)}"
    if answer is None:
        return {**facts, "next": absent(ip)}
    facts["next"] = show.when(answer.next_at, now)
    facts["reason"] = show.cell(answer.reason, most=500)
    if answer.blocked_by:
        facts["blocked by"] = show.cell(answer.blocked_by)
    return facts | ({"job": f"{answer.job_id} ({answer.state})"} if answer.job_id else {})


def _since(ip: Ip, now: datetime) -> str:
    if ip.baseline_at is None:
        return "not yet: the first crawl that reads every page is only stored"
    return show.when(ip.baseline_at, now)


def _flows(window: Window, seen: Sequence[Any]) -> dict[str, str]:
    def drawn(counts: Mapping[datetime, int]) -> str:
        places = [window.start_at + HOUR * place for place in range(SHOWN_HOURS)]
        bars = show.sparkline([counts.get(at) for at in places])
        total = f"{sum(counts.values()):,} in {len(counts)} of {SHOWN_HOURS} hours"
        # The marks beside it show where it begins and ends, where there are gaps.
        return f"▕{bars}▏ {total}"

    return {
        "listed": drawn({row.hour_at: row.inflow for row in seen}),
        "sold": drawn({row.hour_at: row.outflow for row in seen}),
    }


def _crawl_fields(row: Any) -> dict[str, Any]:
    return {
        "task_id": row.task_id,
        "crawled_at": row.crawled_at,
        "items": row.items,
        "inflow": row.inflow,
        "outflow": row.outflow,
        "coverage": make_coverage(row),
        "error": row.error,
    }


def _show_crawls(opened: System, crawls: Sequence[Any]) -> None:
    now = opened.clock.now()
    columns = {
        "crawled": lambda row: show.when(row.crawled_at, now),
        "items": lambda row: f"{row.items:>5,}",
        "listed": lambda row: f"{row.inflow:>6,}",
        "sold": lambda row: f"{row.outflow:>5,}",
        "coverage": lambda row: coverage(make_coverage(row)),
        "trouble": lambda row: show.cell(_trouble(row), most=200),
    }
    show.say("")
    show.table(crawls, columns, empty="It has not been crawled yet.")


def _trouble(row: Any) -> str:
    return row.error or "; ".join(make_coverage(row).page_errors)


def _show_alerts(opened: System, found: Sequence[Mapping[str, Any]]) -> None:
    now = opened.clock.now()
    columns = {
        "alert": lambda one: str(one["id"]),
        "level": lambda one: level(one["level"]),
        "what": lambda one: show.cell(one["message"], most=200),
        "since": lambda one: show.when(one["opened_at"], now),
    }
    show.say("")
    show.table(found, columns, empty="No open alerts.")


@app.command(name="rm")
def remove(
    context: typer.Context,
    ip_id: IpId,
    yes: Annotated[bool, typer.Option("--yes", help="Do it.")] = False,
) -> None:
    """Forget an IP with all that was kept of it."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            ip = await find(reader, ip_id)
            kept = await _describe_kept(reader, ip_id)
        if yes:
            async with opened.store.edit() as tx:
                await franchises.remove_ip(tx, ip_id)
            await queries.drop_kept(opened.store.cache, ip_id)
            show.say(f"{show.plain(ip.name)} is forgotten, with {kept}.")
        else:
            show.say(f"{show.plain(ip.name)} would be forgotten, with {kept}. Give --yes to do it.")

    run(context, work)
    if not yes:
        raise typer.Exit(1)


async def _describe_kept(reader: Reader, ip_id: int) -> str:
    counts = [
        select(func.count()).select_from(table).where(table.c.ip_id == ip_id).scalar_subquery()
        for table in (items, hours)
    ]
    seen, observed = (await reader.execute(select(*counts))).one()
    return f"{seen:,} item{'s' * (seen != 1)} and {observed:,} hour{'s' * (observed != 1)}"
