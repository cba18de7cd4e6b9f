"""Reads and writes whom we notify; never the network."""

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, insert, select, update

from mimawari.errors import BadInput
from mimawari.kernel import watch
from mimawari.kernel.naming import Naming
from mimawari.kernel.ports import Reader, Tx
from mimawari.kernel.values import Entry
from mimawari.notify import sync
from mimawari.notify.incidents import KINDS
from mimawari.notify.models import How, Setting, Target
from mimawari.notify.queries import find_named, find_target, list_targets
from mimawari.notify.tables import targets
from mimawari.settings import Settings

LOOK = "notify.look"
MEMBER = "notify:incidents"
EVERY = timedelta(minutes=1)
MOST_TARGETS = 200
NAMING = (Naming(member="notify:([0-9]{1,9})", names=select(targets.c.id, targets.c.name)),)
_MICROSECOND = timedelta(microseconds=1)


def _values(name: str, setting: Setting, now: datetime) -> dict[str, Any]:
    return {
        "name": name,
        "url": setting.url,
        "watches": json.dumps(sorted(setting.watches)),
        "kinds": json.dumps(sorted(setting.kinds)),
        "how": setting.how,
        "span_us": setting.span // _MICROSECOND,
        "daily_at": setting.daily_at,
        "language": setting.language,
        "enabled": setting.enabled,
        "changed_at": now,
    }


async def add_target(tx: Tx, name: str, setting: Setting, now: datetime) -> Target:
    """Keep one more target."""
    known = await list_targets(tx)
    _check_name(known, name)
    if len(known) >= MOST_TARGETS:
        raise BadInput(f"there are {MOST_TARGETS} targets; remove one first")
    await tx.execute(insert(targets).values({**_values(name, setting, now), "created_at": now}))
    await _place_look(tx, now)
    found = await find_named(tx, name)
    assert found is not None  # noqa: S101 - it was kept a moment ago
    return found


async def change_target(
    tx: Tx, target: Target, name: str, setting: Setting, now: datetime
) -> Target:
    """Keep a target as it is now; what waited for a longer time is told by the new way."""
    _check_name([one for one in await list_targets(tx) if one.id != target.id], name)
    mine = targets.c.id == target.id
    await tx.execute(update(targets).where(mine).values(_values(name, setting, now)))
    if setting.how is How.AT_ONCE and target.setting.how is not How.AT_ONCE:
        await sync.gather(tx, target.id, now)
    await _place_look(tx, now)
    return await find_target(tx, target.id)


async def remove_target(tx: Tx, target: Target, now: datetime) -> None:
    """Forget a target with all that was told to it."""
    await tx.execute(delete(targets).where(targets.c.id == target.id))
    await _place_look(tx, now)


def _check_name(others: list[Target], name: str) -> None:
    if any(one.name == name for one in others):
        raise BadInput(f"a target is called {name!r} already; give another name", code="name_taken")


def _looks(found: list[Target]) -> bool:
    """Say whether anybody is told of incidents, so that somebody must look for them."""
    asked = [one.setting for one in found if one.setting.enabled]
    return any(not one.kinds or not set(one.kinds).isdisjoint(KINDS) for one in asked)


async def _place_look(tx: Tx, now: datetime) -> None:
    if _looks(await list_targets(tx)):
        tx.place_new(Entry(member=MEMBER, kind=LOOK, next_at=now, every=EVERY))
    else:
        tx.remove(MEMBER)


async def list_scheduled(reader: Reader, settings: Settings) -> list[watch.Target]:
    """List what is looked at by the clock: incidents, if anybody is told of them."""
    del settings
    if not _looks(await list_targets(reader)):
        return []
    return [watch.Target(member=MEMBER, kind=LOOK, every=EVERY)]


def check_choice(setting: Setting, kinds: Mapping[str, Any], watches: frozenset[str]) -> None:
    """Refuse events and watches that nobody tells of."""
    for name, known in (("kinds", frozenset(kinds)), ("watches", watches)):
        strangers = sorted(set(getattr(setting, name)) - known)
        if strangers:
            raise BadInput(
                f"{name}: nothing is called {strangers[0]!r}; give some of"
                f" {', '.join(sorted(known))}",
                code=f"bad_{name}",
            )
