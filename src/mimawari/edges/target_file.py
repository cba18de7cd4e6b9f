"""All targets of all watches as one file: read, compared with what is kept, and kept at once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from mimawari.edges.system import System
from mimawari.edges.yaml_lines import MOST_BYTES, Path, Wrong, compose, read_plain, tell_all
from mimawari.errors import BadInput
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.telling import Telling
from mimawari.settings import Settings

VERSION = 1
_LIKE = f"version: {VERSION}, and a list of targets under the name of each watch"


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a watch is given when it keeps a target."""

    settings: Settings
    now: datetime
    is_new: bool
    watches: frozenset[str]
    tellings: Mapping[str, Telling]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """How the targets of one watch stand in a file."""

    section: str
    form: type[BaseModel]
    make: Callable[[Any, Settings], Any]
    """Makes a target of what the file says, or refuses it."""
    key_of: Callable[[Any], str]
    """Names a target so that it is known again."""
    list: Callable[[Reader | Tx], Awaitable[Sequence[Any]]]
    write: Callable[[Any], Mapping[str, Any]]
    """Writes a target as it stands in a file."""
    keep: Callable[[Tx, Any, Keeping], Awaitable[None]]
    check: Callable[[Any, Settings], Awaitable[None]] | None = None
    """Looks, before anything is kept, at what takes a while to look at."""


class Action(StrEnum):
    """What a file does to a target."""

    ADD = "add"
    CHANGE = "change"
    SAME = "same"


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What becomes of one target, and which of its fields change."""

    section: str
    key: str
    action: Action
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Wanted:
    declared: Declared
    targets: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """On which line of the file each target stands."""

    def wrong(self, key: str, error: BadInput) -> Wrong:
        """Say what is wrong with a target, and where."""
        return Wrong(self.lines[key], f"{key}: {error}")


class _DryRun(Exception):
    """Everything was kept to see whether it can be, and is taken back."""


async def export(system: System, sections: Sequence[Declared]) -> str:
    """Write all targets of all watches as one file, in an order that stays."""
    written: dict[str, Any] = {"version": VERSION}
    async with system.store.read() as reader:
        for declared in sections:
            found = sorted(await declared.list(reader), key=declared.key_of)
            written[declared.section] = [dict(declared.write(one)) for one in found]
    return yaml.safe_dump(written, allow_unicode=True, sort_keys=False, width=MOST_BYTES)


async def apply(
    system: System, sections: Sequence[Declared], name: str, text: str, *, is_dry: bool
) -> list[Planned]:
    """Keep what a file says, all of it or nothing, and tell what becomes of each target.

    Targets that the file does not name stay as they are. A dry run does all of it and takes it
    back, so that it refuses just what would be refused.
    """
    wanted = _read(sections, name, text, system.settings)
    if problems := [wrong for one in wanted for wrong in await _check(one, system.settings)]:
        raise tell_all(name, problems)
    planned: list[Planned] = []
    try:
        with suppress(_DryRun):
            async with system.store.edit() as tx:
                for one in wanted:
                    planned += await _keep(tx, one, system)
                _take_back(is_dry=is_dry)
    except Wrong as problem:
        raise tell_all(name, [problem]) from problem
    return planned


def _take_back(*, is_dry: bool) -> None:
    if is_dry:
        raise _DryRun


async def _check(wanted: _Wanted, settings: Settings) -> list[Wrong]:
    problems: list[Wrong] = []
    if wanted.declared.check is None:
        return problems
    for key, target in wanted.targets.items():
        try:
            await wanted.declared.check(target, settings)
        except BadInput as error:
            problems.append(wanted.wrong(key, error))
    return problems


async def _keep(tx: Tx, wanted: _Wanted, system: System) -> list[Planned]:
    declared = wanted.declared
    known = {declared.key_of(one): one for one in await declared.list(tx)}
    planned = []
    for key, target in wanted.targets.items():
        plan = _plan(declared, key, known.get(key), target)
        planned.append(plan)
        if plan.action is Action.SAME:
            continue
        try:
            await declared.keep(tx, target, _keeping(system, is_new=plan.action is Action.ADD))
        except BadInput as error:
            raise wanted.wrong(key, error) from error
    return planned


def _keeping(system: System, *, is_new: bool) -> Keeping:
    return Keeping(
        settings=system.settings,
        now=system.clock.now(),
        is_new=is_new,
        watches=frozenset(watch.name for watch in system.watches.all),
        tellings=system.watches.tellings,
    )


def _plan(declared: Declared, key: str, known: Any, target: Any) -> Planned:
    if known is None:
        return Planned(section=declared.section, key=key, action=Action.ADD)
    before, after = declared.write(known), declared.write(target)
    names = dict.fromkeys([*before, *after])
    changed = tuple(name for name in names if before.get(name) != after.get(name))
    action = Action.CHANGE if changed else Action.SAME
    return Planned(section=declared.section, key=key, action=action, fields=changed)


def _read(sections: Sequence[Declared], name: str, text: str, settings: Settings) -> list[_Wanted]:
    """Read a file, or refuse it with all that is wrong and on which lines."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise BadInput(f"{name}: it is larger than 1 MB; write fewer targets")
    problems: list[Wrong] = []
    try:
        said, lines = read_plain(compose(text.removeprefix("\ufeff"), _LIKE))
    except Wrong as problem:
        raise tell_all(name, [problem]) from problem
    wanted = _read_sections(sections, said, _Reading(lines, problems, settings))
    if problems:
        raise tell_all(name, problems)
    return wanted


@dataclass(frozen=True, slots=True)
class _Reading:
    """What is known of a file while it is read: where things stand, and what is wrong."""

    lines: Mapping[Path, int]
    problems: list[Wrong]
    settings: Settings

    def complain(self, path: Path, words: str) -> None:
        """Note that something is wrong, on the line of what it is about."""
        while path and path not in self.lines:
            path = path[:-1]
        self.problems.append(Wrong(self.lines.get(path, 1), words))


def _read_sections(sections: Sequence[Declared], said: Any, reading: _Reading) -> list[_Wanted]:
    names = {declared.section: declared for declared in sections}
    if not isinstance(said, dict):
        reading.complain((), f"give {_LIKE}")
        return []
    if said.get("version") != VERSION:
        reading.complain(("version",), f"version: write version: {VERSION}")
    for key in said.keys() - names.keys() - {"version"}:
        reading.complain((key,), f"{key} is no watch; give {', '.join(names)}")
    return [
        _read_section(names[key], value, reading) for key, value in said.items() if key in names
    ]


def _read_section(declared: Declared, said: Any, reading: _Reading) -> _Wanted:
    wanted = _Wanted(declared)
    if not isinstance(said, list):
        reading.complain((declared.section,), f"{declared.section}: give a list; [] means none")
        return wanted
    for place, entry in enumerate(said):
        path = (declared.section, place)
        target = _read_target(declared, entry, path, reading)
        if target is None:
            continue
        key = declared.key_of(target)
        if key in wanted.targets:
            reading.complain(path, f"{key} is named twice; keep one of them")
        wanted.targets[key] = target
        wanted.lines[key] = reading.lines.get(path, 1)
    return wanted


def _read_target(declared: Declared, entry: Any, path: Path, reading: _Reading) -> Any:
    try:
        return declared.make(declared.form.model_validate(entry), reading.settings)
    except ValidationError as error:
        for problem in error.errors():
            words = problem["msg"].removeprefix("Value error, ")
            where = ".".join(map(str, problem["loc"]))
            reading.complain((*path, *problem["loc"]), f"{where}: {words}" if where else words)
    except BadInput as error:
        reading.complain(path, str(error))
    return None
