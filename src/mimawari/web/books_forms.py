"""What people type about a job of the books watch, and what is done with it."""

import re
from collections.abc import Mapping
from dataclasses import replace

from starlette.responses import Response

from mimawari.errors import BadInput
from mimawari.text import format_duration, parse_duration
from mimawari.watches.books import actions, jobs
from mimawari.watches.books.models import (
    USUAL_EVERY,
    USUAL_MAIL_LIMIT,
    USUAL_PER_RUN,
    BookJob,
    Search,
)
from mimawari.web.forms import whole
from mimawari.web.visit import Visit
from mimawari.web.words import Words

Typed = Mapping[str, str]
NEW_JOB: Typed = {
    "name": "",
    "queries": "",
    "interval": format_duration(USUAL_EVERY),
    "max_per_run": str(USUAL_PER_RUN),
    "mail_limit": str(USUAL_MAIL_LIMIT),
    "print_type": "",
    "lang_restrict": "",
    "recipients": "",
    "enabled": "1",
}
_BETWEEN = re.compile(r"[\s,]+")


def write_typed(job: Search) -> Typed:
    """Write a job as it would be typed."""
    return {
        "name": job.name,
        "queries": "\n".join(job.queries),
        "interval": format_duration(job.every_for),
        "max_per_run": str(job.max_per_run),
        "mail_limit": str(job.mail_limit),
        "print_type": job.print_type or "",
        "lang_restrict": job.lang_restrict or "",
        "recipients": "\n".join(job.recipients),
        "enabled": "1" if job.enabled else "",
    }


def read_typed(visit: Visit) -> Typed:
    """Return what was typed; of what was not, nothing."""
    return {name: visit.form.get(name, "").strip() for name in NEW_JOB}


def parse_search(typed: Typed, words: Words) -> Search:
    """Make a search of what was typed, or tell what is wrong with it."""
    queries = [line.strip() for line in typed["queries"].splitlines()]
    return Search(
        name=typed["name"],
        queries=tuple(filter(None, queries)),
        enabled=bool(typed["enabled"]),
        every_for=parse_duration(typed["interval"]),
        max_per_run=whole(words("books.per_run_hint"), typed["max_per_run"], words),
        mail_limit=whole(words("books.mail_limit_hint"), typed["mail_limit"], words),
        print_type=typed["print_type"] or None,
        lang_restrict=typed["lang_restrict"] or None,
        recipients=tuple(filter(None, _BETWEEN.split(typed["recipients"]))),
    )


def name_of(visit: Visit) -> str:
    """Return the name of the job that the address names."""
    return str(visit.request.path_params["name"])


async def add_job(visit: Visit, search: Search) -> None:
    """Keep a new job."""
    system = visit.system
    async with system.store.edit() as tx:
        await jobs.add_job(tx, search, system.settings, system.clock.now())


async def change_job(visit: Visit, search: Search) -> None:
    """Change a job to what is wanted."""
    system = visit.system
    async with system.store.edit() as tx:
        now = system.clock.now()
        await jobs.change_job(tx, search.name, lambda _: search, system.settings, now)


async def switch(visit: Visit) -> Response:
    """Run a job when it is due, or no more."""
    is_on = visit.form.get("enabled") == "1"
    system = visit.system

    def change(known: BookJob) -> Search:
        return replace(known, enabled=is_on)

    async with system.store.edit() as tx:
        await jobs.change_job(tx, name_of(visit), change, system.settings, system.clock.now())
    return visit.go("/books")


async def reset(visit: Visit) -> Response:
    """Let a job begin anew from its first page."""
    system = visit.system
    async with system.store.edit() as tx:
        await jobs.reset_job(tx, name_of(visit), system.settings, system.clock.now())
    return visit.go("/books")


async def remove(visit: Visit) -> Response:
    """Forget a job; its books stay."""
    async with visit.system.store.edit() as tx:
        await jobs.remove_job(tx, name_of(visit))
    return visit.go("/books")


async def run_now(visit: Visit) -> Response:
    """Have a job run before others, or say why it cannot."""
    due = await actions.find_due(visit.system, is_forced=True)
    async with visit.system.store.read() as reader:
        job = await jobs.find_known(reader, name_of(visit))
    if job.name not in {one.name for one in due.jobs}:
        raise BadInput(visit.words("books.cannot_run", name=job.name))
    await actions.start(visit.system, [job], is_dry=False)
    return visit.go("/books")


PAGES = (
    ("/books/jobs/{name}/switch", switch, ("POST",)),
    ("/books/jobs/{name}/reset", reset, ("POST",)),
    ("/books/jobs/{name}/remove", remove, ("POST",)),
    ("/books/jobs/{name}/run", run_now, ("POST",)),
)
