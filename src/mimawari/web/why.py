"""The page that answers why something waits, with the whole schedule to choose from."""

from starlette.responses import Response

from mimawari.kernel.values import Entry
from mimawari.kernel.why import why
from mimawari.web.naming import find_names
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, make_file

A_PAGE = 40
_COLUMNS = ("member", "kind", "next_at", "every", "reason")


async def show(visit: Visit) -> Response:
    """Say of a target or job why it waits; list what begins with what was typed."""
    system = visit.system
    name, after = visit.text("name").strip(), visit.text("after")
    if visit.text("format") == "csv":
        entries = await _list(visit, name, "", MOST_ROWS)
        rows = [[getattr(entry, column) for column in _COLUMNS] for entry in entries]
        return make_file("schedule", _COLUMNS, rows)
    answer = await why(system.store, system.clock, system.watches, name) if name else None
    # Where the whole name is known, nothing longer is meant.
    begins = "" if answer else name
    entries = await _list(visit, begins, after, A_PAGE + 1)
    return visit.page(
        "why.html",
        name=name,
        answer=answer,
        begins=begins,
        entries=entries[:A_PAGE],
        names=await find_names(visit, [name, *(entry.member for entry in entries)]),
        after=after,
        following=entries[A_PAGE - 1].member if len(entries) > A_PAGE else None,
        count=await system.store.schedule.count(),
    )


async def _list(visit: Visit, begins: str, after: str, most: int) -> list[Entry]:
    """List a page of the schedule by member, of those that begin so."""
    schedule = visit.system.store.schedule
    entries = await schedule.list(most, max(after, begins))
    if begins and not after and (exact := await schedule.find(begins)):
        entries = [exact, *entries]
    return [entry for entry in entries[:most] if entry.member.startswith(begins)]


PAGES = (("/why", show, ("GET",)),)
