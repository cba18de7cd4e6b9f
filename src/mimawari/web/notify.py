"""Pages of notifications: whom we notify, of what and how, what was sent, and a real test."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response

from mimawari.errors import BadInput, NotFound
from mimawari.kernel.watch import Watches
from mimawari.net.notify import Message, Report, read_report
from mimawari.notify import deliveries, queries, targets
from mimawari.notify.messages import write_message
from mimawari.notify.models import How, Setting, Target
from mimawari.notify.schemas import TargetIn, TargetPatch, write_setting
from mimawari.text import clean
from mimawari.web import forms
from mimawari.web.visit import Visit
from mimawari.web.written import MOST_ROWS, hide_secrets, make_file

A_PAGE = 20
_COLUMNS = ("id", "created_at", "ended_at", "events", "state", "attempts", "reason")
_TEXTS = ("name", "url", "how", "span", "daily_at", "language")

Filled = Mapping[str, Any]


async def show(visit: Visit) -> Response:
    """Show whom we notify, and a form for one more."""
    language = {"language": visit.words.language}
    blank = {**write_setting(Setting(url="")), "name": "", **language}
    return await _show(visit, blank)


async def _show(visit: Visit, filled: Filled, problem: str = "") -> Response:
    async with visit.system.store.read() as reader:
        found = await queries.list_targets(reader)
        last = await queries.find_last_sends(reader, [one.id for one in found])
    return visit.page(
        "notify/list.html",
        422 if problem else 200,
        targets=[(one, hide_secrets(one.setting.url), last.get(one.id)) for one in found],
        told={one.id: _tell_what(visit, one.setting) for one in found},
        problem=problem,
        **_choices(visit, filled),
    )


def _tell_what(visit: Visit, setting: Setting) -> str:
    """Say of what a target is told: of which watches, and of which kinds of events if not all."""
    watches = [visit.words(f"nav.{name}") for name in setting.watches]
    kinds = [visit.event(kind) for kind in setting.kinds]
    parts = [", ".join(watches), ", ".join(kinds)]
    return " · ".join(part for part in parts if part) or visit.words("notify.all_watches")


def _choices(visit: Visit, filled: Filled) -> dict[str, Any]:
    watches: Watches = visit.system.watches
    tellings = watches.tellings.values()
    names = [watch.name for watch in watches.all if watch.name != "notify"]
    return {
        "typed": filled,
        "watches": [(name, visit.words(f"nav.{name}")) for name in names],
        "kinds": [(one.kind, one.name(visit.words.language)) for one in tellings],
        "ways": [(str(how), visit.words.maybe("notify_how", how)) for how in How],
    }


def _typed(visit: Visit) -> dict[str, Any]:
    """Return what was typed, to be checked or shown again."""
    texts = {name: visit.form.get(name, "").strip() for name in _TEXTS}
    chosen = {
        "watches": [one.name for one in visit.system.watches.all if f"w:{one.name}" in visit.form],
        "kinds": [kind for kind in visit.system.watches.tellings if f"k:{kind}" in visit.form],
    }
    return {**texts, **chosen, "enabled": True}


def _check(visit: Visit, form: type[BaseModel], said: Filled) -> Any:
    return forms.check(form, dict(said), visit.words, "notify_field")


async def add(visit: Visit) -> Response:
    """Notify one more target; what cannot be taken is told above the form."""
    said = _typed(visit)
    try:
        given = _check(visit, TargetIn, said)
        async with visit.system.store.edit() as tx:
            now = visit.system.clock.now()
            added = await targets.add_target(tx, given.name, given.to_setting(), now)
    except BadInput as error:
        # What was typed as an address may be a secret, and is not shown again.
        return await _show(visit, {**said, "url": ""}, visit.problem(error))
    return visit.go(f"/notify/{added.id}")


async def _find(visit: Visit) -> Target:
    async with visit.system.store.read() as reader:
        return await queries.find_target(reader, forms.id_of(visit))


async def show_one(visit: Visit) -> Response:
    """Show a target: its setting, and what was sent to it."""
    target = await _find(visit)
    if visit.text("format") == "csv":
        return await _download(visit, target)
    return await _show_one(visit, target, _fill(target))


async def _download(visit: Visit, target: Target) -> Response:
    async with visit.system.store.read() as reader:
        found = await queries.list_sends(reader, target.id, MOST_ROWS)
    rows = [[getattr(one, name) for name in _COLUMNS] for one in found]
    return make_file(f"messages-{target.id}", _COLUMNS, rows)


def _fill(target: Target) -> Filled:
    return {**write_setting(target.setting), "name": target.name, "url": ""}


async def _show_one(
    visit: Visit,
    target: Target,
    filled: Filled,
    problem: str = "",
    tried: tuple[Message, Report] | None = None,
) -> Response:
    before = visit.text("before") or None
    async with visit.system.store.read() as reader:
        sends = await queries.list_sends(reader, target.id, A_PAGE + 1, before)
    return visit.page(
        "notify/one.html",
        422 if problem else 200,
        target=target,
        address=hide_secrets(target.setting.url),
        sends=sends[:A_PAGE],
        following=sends[A_PAGE - 1].id if len(sends) > A_PAGE else None,
        problem=problem,
        tried=tried,
        **_choices(visit, filled),
    )


async def change(visit: Visit) -> Response:
    """Change a target as its form says; an address that was left empty stays."""
    target = await _find(visit)
    said = {**_typed(visit), "enabled": target.setting.enabled}
    try:
        patch = _check(visit, TargetPatch, {k: v for k, v in said.items() if k != "url" or v})
        name, setting = patch.change(target)
        async with visit.system.store.edit() as tx:
            now = visit.system.clock.now()
            await targets.change_target(tx, target, name, setting, now)
    except BadInput as error:
        return await _show_one(visit, target, {**said, "url": ""}, visit.problem(error))
    return visit.go(f"/notify/{target.id}")


async def switch(visit: Visit) -> Response:
    """Switch a target on or off."""
    target = await _find(visit)
    patch = TargetPatch(enabled=not target.setting.enabled)
    name, setting = patch.change(target)
    async with visit.system.store.edit() as tx:
        await targets.change_target(tx, target, name, setting, visit.system.clock.now())
    return visit.go(f"/notify/{target.id}")


async def remove(visit: Visit) -> Response:
    """Notify a target no more."""
    target = await _find(visit)
    async with visit.system.store.edit() as tx:
        await targets.remove_target(tx, target, visit.system.clock.now())
    return visit.go("/notify")


async def try_it(visit: Visit) -> Response:
    """Really send the last event of a target's choice, and show what happened."""
    target = await _find(visit)
    system = visit.system
    tried = await deliveries.send_test(
        system.store, system.clock, system.settings, system.watches.tellings, target.setting
    )
    return await _show_one(visit, target, _fill(target), tried=tried)


async def show_send(visit: Visit) -> Response:
    """Show one message: what it said, and what really happened."""
    send_id = clean(visit.request.path_params["send_id"])[:36]
    async with visit.system.store.read() as reader:
        send = await queries.find_send(reader, send_id)
        if send is None:
            raise NotFound(visit.words("problem.nowhere"))
        target = await queries.find_target(reader, send.target_id)
        told = await queries.list_told(reader, send.id)
    system, language = visit.system, target.setting.language
    message = write_message(send.id, language, told, system.watches.tellings, system.settings)
    return visit.page(
        "notify/send.html",
        send=send,
        target=target,
        message=message,
        told=told,
        report=read_report(send.report),
    )


PAGES = (
    ("/notify", show, ("GET",)),
    ("/notify", add, ("POST",)),
    ("/notify/sends/{send_id}", show_send, ("GET",)),
    ("/notify/{id:int}", show_one, ("GET",)),
    ("/notify/{id:int}", change, ("POST",)),
    ("/notify/{id:int}/switch", switch, ("POST",)),
    ("/notify/{id:int}/remove", remove, ("POST",)),
    ("/notify/{id:int}/test", try_it, ("POST",)),
)
