"""Commands for a file of all targets: apply one, export one."""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated

import typer

from mimawari import show
from mimawari.app.commands.run import fail, run, system
from mimawari.edges.system import Json
from mimawari.edges.target_file import Action, Declared, Planned
from mimawari.edges.target_file import apply as apply_file
from mimawari.edges.target_file import export as export_file
from mimawari.edges.yaml_lines import MOST_BYTES
from mimawari.errors import BadInput
from mimawari.kernel.watch import Watch

_STYLES = {Action.ADD: "[green]add[/]", Action.CHANGE: "[yellow]change[/]", Action.SAME: "same"}

File = Annotated[str, typer.Argument(metavar="FILE", help="A YAML file; - reads standard input.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what would change; change nothing.")]
Out = Annotated[Path | None, typer.Option("--out", help="Write to this file.")]


def sections(watches: Sequence[Watch]) -> list[Declared]:
    """List how the targets of all watches stand in a file."""
    return [resolve_name(watch.declared) for watch in watches if watch.declared]


def apply(file: File, dry_run: DryRun = False, json: Json = False) -> None:
    """Add and change the targets of all watches as a file says, all of it or nothing."""
    text = _read(file)

    async def work() -> list[Planned]:
        async with system() as opened:
            found = sections(opened.watches.all)
            return await apply_file(opened, found, _name(file), text, is_dry=dry_run)

    planned = run(work())
    if json:
        show.console.print_json(show.as_json(planned))
        return
    _show(planned)
    counts = Counter(plan.action for plan in planned)
    said = (
        f"{counts[Action.ADD]} added, {counts[Action.CHANGE]} changed, {counts[Action.SAME]} same"
    )
    show.say(f"Nothing was changed; it would be: {said}." if dry_run else f"{said}.")


def _show(planned: Sequence[Planned]) -> None:
    different = [plan for plan in planned if plan.action is not Action.SAME]
    if different:
        columns = {
            "watch": lambda plan: plan.section,
            "target": lambda plan: show.cell(plan.key, most=60),
            "": lambda plan: _STYLES[plan.action],
            "fields": lambda plan: show.cell(", ".join(plan.fields)) if plan.fields else "",
        }
        show.table(different, columns, empty="")


def export(out: Out = None) -> None:
    """Write the targets of all watches as one file, which `apply` takes."""

    async def work() -> str:
        async with system() as opened:
            return await export_file(opened, sections(opened.watches.all))

    text = run(work())
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        fail(BadInput(f"{out}: {error.strerror}; give another file with --out"))
    show.say(f"Wrote {out}.")


def _name(file: str) -> str:
    return "standard input" if file == "-" else Path(file).name


def _read(file: str) -> str:
    try:
        if file == "-":
            raw = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(file).open("rb") as stream:
                raw = stream.read(MOST_BYTES + 1)
        return raw.decode("utf-8")
    except OSError as error:
        fail(BadInput(f"{file}: {error.strerror}; give a file that `mimawari export` has written"))
    except UnicodeDecodeError:
        fail(BadInput(f"{file} is no text in UTF-8; save it as such"))
