"""The notification targets as they stand in a file of all targets: addresses by reference only."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BeforeValidator

from mimawari.edges.target_file import Declared, Keeping
from mimawari.errors import BadInput
from mimawari.kernel.ports import Reader, Tx
from mimawari.notify import queries, targets
from mimawari.notify.models import USUAL_AT, Setting
from mimawari.notify.rules import is_reference
from mimawari.notify.schemas import At, SettingIn, TargetIn, write_setting
from mimawari.settings import Settings

DAY_MINUTES = 24 * 60
KEPT = "kept:secret"
"""Stands for an address that is kept here and in no file."""


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    setting: Setting


def _read_time(value: Any) -> Any:
    """Take what YAML makes of 12:30, the number of minutes, for the time it was."""
    is_time = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < DAY_MINUTES
    return f"{value // 60:02}:{value % 60:02}" if is_time else value


class TargetEntry(TargetIn):
    """A notification target."""

    url: str
    daily_at: Annotated[At, BeforeValidator(_read_time)] = USUAL_AT


def _make(entry: TargetEntry, _settings: Settings) -> _Named:
    if entry.url != KEPT and not is_reference(entry.url):
        raise BadInput(
            f"url: an address is a secret and stands in no file; write env:NAME, file:/PATH or"
            f" {KEPT} for the one that is kept"
        )
    said = entry.model_dump(exclude={"name"})
    if entry.url == KEPT:
        plain = SettingIn.model_validate({**said, "url": "env:KEPT"}).to_setting()
        return _Named(entry.name, replace(plain, url=KEPT))
    return _Named(entry.name, SettingIn.model_validate(said).to_setting())


async def _list(reader: Reader | Tx) -> Sequence[_Named]:
    return [_Named(one.name, one.setting) for one in await queries.list_targets(reader)]


def _write(target: _Named) -> Mapping[str, Any]:
    setting = target.setting
    url = setting.url if is_reference(setting.url) else KEPT
    return {"name": target.name, **write_setting(setting), "url": url}


async def _keep(tx: Tx, target: _Named, keeping: Keeping) -> None:
    targets.check_choice(target.setting, keeping.tellings, keeping.watches)
    if keeping.is_new:
        if target.setting.url == KEPT:
            raise BadInput("no address is kept for it here; write env:NAME or file:/PATH")
        await targets.add_target(tx, target.name, target.setting, keeping.now)
        return
    known = await queries.find_named(tx, target.name)
    assert known is not None  # noqa: S101 - it was listed in this transaction
    setting = target.setting
    if setting.url == KEPT:
        setting = replace(setting, url=known.setting.url)
    await targets.change_target(tx, known, target.name, setting, keeping.now)


declared = Declared(
    section="notify",
    form=TargetEntry,
    make=_make,
    key_of=lambda target: target.name,
    list=_list,
    write=_write,
    keep=_keep,
)
