"""The monitors as they stand in a file of all targets."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import select, update

from mimawari.edges.target_file import Declared, Keeping
from mimawari.kernel.ports import Reader, Tx
from mimawari.settings import Settings
from mimawari.watches.streams import actions, sync
from mimawari.watches.streams.models import ACTIVE, Monitor
from mimawari.watches.streams.schemas.requests import MonitorIn
from mimawari.watches.streams.state import write_config
from mimawari.watches.streams.tables import monitors

CREATED_BY = "file"


def _make(entry: MonitorIn, settings: Settings) -> Monitor:
    return actions.make_monitor(settings, entry)


async def _list(reader: Reader | Tx) -> Sequence[Monitor]:
    query = select(monitors).where(monitors.c.status.in_(ACTIVE)).order_by(monitors.c.id)
    return [sync.make_monitor(row) for row in await reader.execute(query)]


def _write(monitor: Monitor) -> Mapping[str, Any]:
    config = write_config(monitor.config)
    config["maintenance"] = [
        {"from": one["start"], "to": one["end"]} for one in config["maintenance"]
    ]
    return {
        "stream_url": monitor.stream_url,
        "callback_url": monitor.callback_url,
        "config": config,
        "metadata": dict(monitor.metadata),
    }


async def _check(monitor: Monitor, settings: Settings) -> None:
    await actions.check_addresses(settings, monitor)


async def _keep(tx: Tx, monitor: Monitor, keeping: Keeping) -> None:
    if keeping.is_new:
        made = replace(monitor, created_at=keeping.now)
        await actions.keep_new(tx, made, keeping.settings, CREATED_BY)
        return
    values = {
        "callback_url": monitor.callback_url,
        "config": write_config(monitor.config),
        "metadata": dict(monitor.metadata),
        "updated_at": keeping.now,
    }
    mine = monitors.c.active_url == monitor.stream_url
    await tx.execute(update(monitors).where(mine).values(values))


declared = Declared(
    section="streams",
    form=MonitorIn,
    make=_make,
    key_of=lambda monitor: monitor.stream_url,
    list=_list,
    write=_write,
    keep=_keep,
    check=_check,
)
