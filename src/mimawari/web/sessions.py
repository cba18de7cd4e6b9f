"""The page of sessions: a list, and forms that end them."""

from starlette.responses import Response

from mimawari.errors import NotFound
from mimawari.text import clean
from mimawari.web.visit import Visit

HERE = "/settings/sessions"


async def show(visit: Visit) -> Response:
    """Show the sessions, the most recently used first."""
    found = await visit.system.store.sessions.list()
    return visit.page("sessions.html", sessions=found)


async def end(visit: Visit) -> Response:
    """End one session."""
    if not await visit.system.store.sessions.end(clean(visit.form.get("id", ""))):
        raise NotFound(visit.words("sessions.unknown"))
    return visit.go(HERE)


async def end_others(visit: Visit) -> Response:
    """End all sessions but the visitor's own."""
    kept = visit.session.id if visit.session else None
    for session in await visit.system.store.sessions.list():
        if session.id != kept:
            await visit.system.store.sessions.end(session.id)
    return visit.go(HERE)


PAGES = (
    (HERE, show, ("GET",)),
    (f"{HERE}/end", end, ("POST",)),
    (f"{HERE}/end-others", end_others, ("POST",)),
)
