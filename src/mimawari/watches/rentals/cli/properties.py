"""Commands that look at properties: all of them, one of them, and what changed."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from mimawari import show
from mimawari.edges.request_job import Later
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Reader
from mimawari.text import clean
from mimawari.watches.rentals import actions, queries
from mimawari.watches.rentals.cli.cells import (
    area,
    changed,
    cut_ids,
    day,
    nearest,
    reason_words,
    stations,
    status,
    what,
    yen,
)
from mimawari.watches.rentals.models import Kind, Status
from mimawari.watches.rentals.queries import Sort, Wanted
from mimawari.watches.rentals.schemas.responses import ChangeOut, PropertyDetailOut, PropertyOut

MOST_YEN = 10**9
SHOWN_CHANGES = 20
SHOWN_SNAPSHOTS = 500
SHOWN_MATCHES = 5

Limit = Annotated[int, typer.Option(min=1, max=500, help="How many at the most.")]


def list_properties(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    *,
    status: Annotated[Status | None, typer.Option(help="On offer or not.")] = None,
    min_rent: Annotated[
        int | None, typer.Option(min=0, max=MOST_YEN, help="The lowest rent, in yen.")
    ] = None,
    max_rent: Annotated[
        int | None, typer.Option(min=0, max=MOST_YEN, help="The highest rent, in yen.")
    ] = None,
    layout: Annotated[str | None, typer.Option(help="As the site writes it, like 1LDK.")] = None,
    search: Annotated[
        str, typer.Option(help="Only those whose name, address or station holds this.")
    ] = "",
    sort: Annotated[Sort, typer.Option(help="Rents go up, all else goes down.")] = Sort.NEWEST,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List the properties that are known."""
    wanted = Wanted(
        status=status,
        least_rent_yen=min_rent,
        most_rent_yen=max_rent,
        layout=None if layout is None else clean(layout),
        search=clean(search),
        sort=sort,
        is_ascending=sort is Sort.RENT,
    )

    async def work(opened: System) -> None:
        if min_rent is not None and max_rent is not None and min_rent > max_rent:
            raise BadInput("--min-rent is above --max-rent; no rent is both, so turn them round")
        async with opened.store.read() as reader:
            rows = await queries.list_properties(reader, wanted, limit, None)
            ids = await cut_ids(reader, [row.property_id for row in rows])
        if json:
            show.console.print_json(
                show.as_json([PropertyOut.of(row).model_dump() for row in rows])
            )
            return
        _show_properties(opened, rows, ids)
        if len(rows) == limit:
            show.say("There may be more; --limit takes up to 500.")

    run(context, work)


def _show_properties(opened: System, rows: Sequence[Any], ids: Mapping[str, str]) -> None:
    zone = opened.settings.zone
    columns = {
        "id": lambda row: ids[row.property_id],
        "building, station": _building,
        "layout": lambda row: show.cell(row.layout, most=12),
        "    m²": lambda row: f"{area(row.area_m2):>6}",
        "rent + fee": _rent,
        "status": status,
        "since": lambda row: day(row.first_seen_at, zone),
    }
    empty = "No such properties. `mimawari rentals list URL` finds some."
    show.table(rows, columns, empty=empty)


def _building(row: Any) -> str:
    return f"{show.cell(row.building_name)}\n[dim]{show.cell(nearest(row.stations))}[/]"


def _rent(row: Any) -> str:
    fee = f"+ {yen(row.fee_yen)}" if row.fee_yen else ""
    return f"{yen(row.rent_yen):>10}\n{fee:>10}"


def show_one(
    context: typer.Context,
    property_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id that `ls` shows, or how it begins.")
    ],
    json: Json = False,
) -> None:
    """Show all that is known of a property: its terms, its rents, its changes."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await _find(reader, clean(property_id.strip()))
        if json:
            await write_property(opened, found)
        else:
            await show_property(opened, found)

    run(context, work)


async def _find(reader: Reader, prefix: str) -> str:
    if not prefix:
        raise BadInput("an id has some digits; `mimawari rentals ls` shows them")
    rows = await queries.list_by_prefix(reader, prefix, SHOWN_MATCHES + 1)
    ids = [str(row.property_id) for row in rows]
    if len(ids) == 1 or prefix in ids:
        return prefix if prefix in ids else ids[0]
    shown = show.plain(prefix)
    if not ids:
        raise NotFound(f"no property has an id like {shown!r}; `mimawari rentals ls` lists them")
    more = ", …" if len(ids) > SHOWN_MATCHES else ""
    begin = ", ".join((await cut_ids(reader, ids[:SHOWN_MATCHES])).values())
    raise BadInput(f"several ids begin with {shown!r}: {begin}{more}; give more of it")


async def write_property(opened: System, property_id: str) -> None:
    """Write all that is known of a property, for programs."""
    row, steps, told = await _read(opened, property_id)
    waiting = await actions.find_waiting(opened, property_id)
    whole = {
        **PropertyDetailOut.on(row, waiting).model_dump(),
        "rents": [{"at": at, "rent_yen": rent} for at, rent in steps],
        "changes": [ChangeOut.of(one).model_dump() for one in told],
    }
    show.console.print_json(show.as_json(whole))


async def show_property(opened: System, property_id: str) -> None:
    """Show all that is known of a property."""
    row, steps, told = await _read(opened, property_id)
    rents = [rent for _, rent in steps]
    facts = _terms(row)
    if len(rents) > 1:
        facts["rents"] = f"{_draw(rents)} {' → '.join(map(yen, rents))}"
    waiting = await actions.find_waiting(opened, property_id)
    show.facts(facts | _times(opened, row) | {"next": _next(opened, row, waiting)})
    show.say("")
    _show_story(opened, told)


async def _read(
    opened: System, property_id: str
) -> tuple[Any, list[tuple[Any, int]], Sequence[Any]]:
    async with opened.store.read() as reader:
        row = await queries.find_property(reader, property_id)
        shots = await queries.list_snapshots(reader, property_id, SHOWN_SNAPSHOTS)
        told = await queries.list_changes(reader, SHOWN_CHANGES, property_id=property_id)
    steps: list[tuple[Any, int]] = []
    for shot in reversed(shots):
        if shot.rent_yen is not None and (not steps or steps[-1][1] != shot.rent_yen):
            steps.append((shot.at, shot.rent_yen))
    return row, steps, told


def _draw(rents: Sequence[int]) -> str:
    """Draw rents so that a small step is seen too: from the lowest up, not from zero."""
    return show.sparkline([rent - min(rents) for rent in rents])


def _terms(row: Any) -> dict[str, str]:
    fee = f" + {yen(row.fee_yen)} fee" if row.fee_yen else ""
    rent = f"{_in_yen(row.rent_yen)}{fee}"
    ways = [show.cell(way, most=200) for way in stations(row.stations)]
    size = "–" if row.area_m2 is None else f"{area(row.area_m2)} m²"
    facts = {
        "id": show.cell(row.property_id, most=80),
        "page": show.cell(row.url, most=2000),
        "title": show.cell(row.title, most=200),
        "building": show.cell(row.building_name, most=200),
        "status": status(row),
        "rent": f"{rent} ({show.cell(row.rent_note)})" if row.rent_note else rent,
        "deposit": _in_yen(row.deposit_yen),
        "key money": _in_yen(row.key_money_yen),
        "layout": f"{show.cell(row.layout, most=80)}, {size}",
        "floor": "–" if row.floor is None else str(row.floor),
        "built": _built(row),
        "address": show.cell(row.address, most=200),
    }
    # One a line, under the first: blank names of growing length are names apart.
    facts |= {" " * number or "stations": way for number, way in enumerate(ways)}
    if row.latitude is not None and row.longitude is not None:
        facts["place"] = f"{row.latitude:.6f}, {row.longitude:.6f}"
    return facts | {"pictures": str(len(PropertyOut.of(row).images))}


def _in_yen(amount: int | None) -> str:
    return yen(amount) if amount is None else f"{yen(amount)} yen"


def _built(row: Any) -> str:
    if row.years_old is None:
        return show.cell(row.built_on)
    age = "new" if not row.years_old else f"{row.years_old} year{'s' * (row.years_old != 1)} old"
    return age if row.built_on is None else f"{show.cell(row.built_on)} ({age})"


def _times(opened: System, row: Any) -> dict[str, str]:
    now, zone = opened.clock.now(), opened.settings.zone
    said = {
        "first seen": show.when(row.first_seen_at, now, zone),
        "last seen": show.when(row.last_seen_at, now, zone),
        "page read": show.when(row.detail_at, now, zone) if row.detail_at else "not yet",
    }
    if row.ended_at is not None:
        said["ended"] = show.when(row.ended_at, now, zone)
    return said


def _next(opened: System, row: Any, waiting: Later | None) -> str:
    if row.gone_at is not None:
        return "never: the site said that it is gone"
    if waiting is None:
        return "in a daily round"
    at = show.when(waiting.next_at, opened.clock.now(), opened.settings.zone)
    # Others may be before it in the queue.
    return f"not before {at}: {show.cell(reason_words(opened, waiting.reason), most=500)}"


def _show_story(opened: System, told: Sequence[Any]) -> None:
    zone = opened.settings.zone
    columns = {
        "when": lambda row: show.short(row.at, zone),
        "what": lambda row: what(row.kind),
        "change": lambda row: changed(row.kind, row.old_value, row.new_value),
        "seen on": lambda row: "its page" if row.source == "detail" else "a list",
    }
    show.table(told, columns, empty="Nothing has changed.")


def list_changes(
    context: typer.Context,
    kind: Annotated[Kind | None, typer.Option(help="Only changes of this kind.")] = None,
    limit: Limit = 50,
    json: Json = False,
) -> None:
    """List what changed, newest first."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            rows = await queries.list_changes(reader, limit, kind=kind)
            ids = await cut_ids(reader, [row.property_id for row in rows])
        if json:
            show.console.print_json(show.as_json([ChangeOut.of(row).model_dump() for row in rows]))
            return
        zone = opened.settings.zone
        columns = {
            "when": lambda row: show.short(row.at, zone),
            "id": lambda row: ids[row.property_id],
            "building": lambda row: show.cell(row.building_name),
            "what": lambda row: what(row.kind),
            "change": lambda row: changed(row.kind, row.old_value, row.new_value),
        }
        show.table(rows, columns, empty="Nothing has changed yet.")

    run(context, work)
