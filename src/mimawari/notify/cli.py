"""Commands of notifications: add, list, show, change, remove, switch and test targets."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from mimawari import show
from mimawari.edges.system import Json, System, run
from mimawari.errors import BadInput, NotFound
from mimawari.log import hide_secrets
from mimawari.net.notify import Message, Report
from mimawari.notify import deliveries, queries, targets
from mimawari.notify.models import How, Send, Setting, Target
from mimawari.text import format_duration

if TYPE_CHECKING:
    from pydantic import BaseModel

    from mimawari.notify.schemas import TargetIn, TargetPatch

M = TypeVar("M", bound="BaseModel")

app = typer.Typer(help="Notify people of what is found and of what fails.", no_args_is_help=True)
SHOWN_SENDS = 10

Name = Annotated[str, typer.Argument(help="What the target is called.")]
WatchOf = Annotated[
    list[str] | None, typer.Option("--watch", help="Only of this watch; give it again for more.")
]
KindOf = Annotated[
    list[str] | None,
    typer.Option("--kind", help="Only events of this kind; give it again for more."),
]
Every = Annotated[
    str | None, typer.Option(help="Together, so long after the first of them: 30m, 2h.")
]
Daily = Annotated[str | None, typer.Option(help="Once a day at this time: 08:00.")]
AtOnce = Annotated[bool, typer.Option("--at-once", help="Each event at once.")]
Language = Annotated[str | None, typer.Option(help="ja or en.")]
Disabled = Annotated[bool, typer.Option("--disabled", help="Send nothing yet.")]


@app.command()
def add(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    name: Name,
    url: Annotated[str, typer.Argument(help="An address of apprise, env:NAME or file:/PATH.")],
    *,
    watch: WatchOf = None,
    kind: KindOf = None,
    every: Every = None,
    daily: Daily = None,
    language: Language = None,
    disabled: Disabled = False,
) -> None:
    """Notify one more target, from now on."""
    said = {"name": name, "url": url, **_said(watch, kind, language), "enabled": not disabled}

    async def work(opened: System) -> None:
        given = _parse_new({**said, **_way(every, daily, at_once=False)})
        setting = given.to_setting()
        _check(opened, setting)
        async with opened.store.edit() as tx:
            found = await targets.add_target(tx, given.name, setting, opened.clock.now())
        show.say(f"{show.plain(found.name)} is told {_how(found.setting)}.")
        show.say(f"Try it: mimawari notify test {show.plain(found.name)}")

    run(context, work)


def _said(
    watch: Sequence[str] | None, kind: Sequence[str] | None, language: str | None
) -> dict[str, Any]:
    given = {"watches": watch, "kinds": kind, "language": language}
    return {name: value for name, value in given.items() if value is not None}


def _way(every: str | None, daily: str | None, *, at_once: bool) -> dict[str, Any]:
    if sum((every is not None, daily is not None, at_once)) > 1:
        raise BadInput("give one of --at-once, --every and --daily")
    if every is not None:
        return {"how": "grouped", "span": every}
    if daily is not None:
        return {"how": "daily", "daily_at": daily}
    return {"how": "at_once"} if at_once else {}


def _parse_new(said: Mapping[str, Any]) -> "TargetIn":
    # What describes requests takes long to load, and most commands do without.
    from mimawari.notify.schemas import TargetIn  # noqa: PLC0415

    return _parse(TargetIn, said)


def _parse_change(said: Mapping[str, Any]) -> "TargetPatch":
    from mimawari.notify.schemas import TargetPatch  # noqa: PLC0415 - as above

    return _parse(TargetPatch, said)


def _parse(form: type[M], said: Mapping[str, Any]) -> M:
    """Check what was said by the rules of the API."""
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    try:
        return form.model_validate(said)
    except ValidationError as error:
        first = error.errors()[0]
        where = next((str(part) for part in reversed(first["loc"]) if isinstance(part, str)), "")
        raise BadInput(f"{where}: {first['msg'].removeprefix('Value error, ')}") from error


def _check(opened: System, setting: Setting) -> None:
    names = frozenset(watch.name for watch in opened.watches.all)
    targets.check_choice(setting, opened.watches.tellings, names)


def _how(setting: Setting) -> str:
    if setting.how is How.GROUPED:
        return f"together, {format_duration(setting.span)} after the first"
    return f"daily at {setting.daily_at}" if setting.how is How.DAILY else "at once"


def _what(setting: Setting) -> str:
    of = ", ".join(setting.watches) or "all watches"
    return f"{', '.join(setting.kinds) or 'all'} of {of}"


@app.command(name="ls")
def list_targets(context: typer.Context, json: Json = False) -> None:
    """List whom we notify, and how the last message went."""

    async def work(opened: System) -> None:
        async with opened.store.read() as reader:
            found = await queries.list_targets(reader)
            last = await queries.find_last_sends(reader, [one.id for one in found])
        if json:
            show.console.print_json(show.as_json([_plain(one) for one in found]))
            return
        columns = {
            "name": lambda one: show.cell(one.name),
            "to": lambda one: show.cell(hide_secrets(one.setting.url)),
            "what": lambda one: show.cell(_what(one.setting), most=120),
            "when": lambda one: _how(one.setting),
            "": lambda one: "on" if one.setting.enabled else "[yellow]off[/]",
            "last": lambda one: _last(last.get(one.id)),
        }
        show.table(found, columns, empty="Nobody is notified yet; `mimawari notify add`.")

    run(context, work)


def _last(send: Send | None) -> str:
    if send is None:
        return "–"
    return f"{show.state(send.state)} {show.cell(send.reason)}" if send.reason else send.state


def _plain(target: Target) -> dict[str, Any]:
    from mimawari.notify.schemas import write_setting  # noqa: PLC0415 - only programs need it

    hidden = hide_secrets(target.setting.url)
    return {"id": target.id, "name": target.name, **write_setting(target.setting), "url": hidden}


async def _find(opened: System, name: str) -> Target:
    async with opened.store.read() as reader:
        found = await queries.find_named(reader, name)
    if found is None:
        raise NotFound(f"no target is called {name!r}; `mimawari notify ls` lists them")
    return found


@app.command(name="show")
def show_target(context: typer.Context, name: Name, json: Json = False) -> None:
    """Show a target and its last messages."""

    async def work(opened: System) -> None:
        target = await _find(opened, name)
        async with opened.store.read() as reader:
            found = await queries.list_sends(reader, target.id, SHOWN_SENDS)
        if json:
            show.console.print_json(show.as_json({**_plain(target), "sends": found}))
            return
        _show(opened, target, found)

    run(context, work)


def _show(opened: System, target: Target, found: Sequence[Send]) -> None:
    setting, zone = target.setting, opened.settings.zone
    show.facts(
        {
            "name": show.cell(target.name),
            "to": show.cell(hide_secrets(setting.url), most=200),
            "what": show.cell(_what(setting), most=500),
            "when": _how(setting),
            "language": setting.language,
            "is": "on" if setting.enabled else "off",
        }
    )
    columns = {
        "at": lambda one: show.short(one.created_at, zone),
        "events": lambda one: str(one.events),
        "state": lambda one: show.state(one.state),
        "attempts": lambda one: str(one.attempts),
        "reason": lambda one: show.cell(one.reason, most=200),
    }
    show.table(found, columns, empty="Nothing was sent yet.")


@app.command()
def update(  # noqa: PLR0913 - the command's own options
    context: typer.Context,
    name: Name,
    *,
    rename: Annotated[str | None, typer.Option(help="What to call it from now on.")] = None,
    url: Annotated[str | None, typer.Option(help="Another address.")] = None,
    watch: WatchOf = None,
    kind: KindOf = None,
    all_events: Annotated[bool, typer.Option("--all", help="All kinds of all watches.")] = False,
    at_once: AtOnce = False,
    every: Every = None,
    daily: Daily = None,
    language: Language = None,
) -> None:
    """Change what is named of a target."""
    said = {**({"watches": [], "kinds": []} if all_events else {}), **_said(watch, kind, language)}
    said |= {key: value for key, value in (("name", rename), ("url", url)) if value is not None}
    _change(context, name, lambda: {**said, **_way(every, daily, at_once=at_once)})


def _change(context: typer.Context, name: str, say: Callable[[], Mapping[str, Any]]) -> None:
    async def work(opened: System) -> None:
        target = await _find(opened, name)
        made = _parse_change(say()).change(target)
        _check(opened, made[1])
        async with opened.store.edit() as tx:
            found = await targets.change_target(tx, target, *made, opened.clock.now())
        state = f"is told {_how(found.setting)}" if found.setting.enabled else "is off"
        show.say(f"{show.plain(found.name)} {state}.")

    run(context, work)


@app.command()
def enable(context: typer.Context, name: Name) -> None:
    """Notify a target again."""
    _change(context, name, lambda: {"enabled": True})


@app.command()
def disable(context: typer.Context, name: Name) -> None:
    """Send a target nothing until it is enabled; what happens meanwhile is not told later."""
    _change(context, name, lambda: {"enabled": False})


@app.command(name="rm")
def remove(context: typer.Context, name: Name) -> None:
    """Notify a target no more, and forget what it was told."""

    async def work(opened: System) -> None:
        target = await _find(opened, name)
        async with opened.store.edit() as tx:
            await targets.remove_target(tx, target, opened.clock.now())
        show.say(f"{show.plain(name)} is notified no more.")

    run(context, work)


@app.command(name="test")
def try_target(context: typer.Context, name: Name, json: Json = False) -> None:
    """Really send a target the last event of its choice, and show what happened."""

    async def work(opened: System) -> tuple[Message, Report]:
        setting = (await _find(opened, name)).setting
        given = (opened.store, opened.clock, opened.settings, opened.watches.tellings)
        return await deliveries.send_test(*given, setting)

    message, report = run(context, work)
    if json:
        show.console.print_json(show.as_json({"message": message, "report": report}))
    else:
        _show_report(message, report)
    if not report.is_sent:
        raise typer.Exit(1)


def _show_report(message: Message, report: Report) -> None:
    show.say(show.plain(message.title, most=200))
    for line in message.body.splitlines():
        show.say(f"  {show.plain(line, most=500)}")
    for one in report.exchanges:
        show.say(f"> {one.method} {show.plain(one.url, most=300)}")
        show.say(f"> {show.plain(one.sent, most=2000)}")
        show.say(f"< {one.status or 'no answer'} {show.plain(one.answer, most=2000)}")
    result = "sent" if report.is_sent else f"not sent: {show.plain(report.error, most=500)}"
    show.say(f"{result} ({report.took_ms} ms)")
