"""The saved searches as they stand in a file of all targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mimawari.edges.target_file import Declared, Keeping
from mimawari.kernel.ports import Reader, Tx
from mimawari.settings import Settings
from mimawari.sites.yahoo_realestate import parse_list_url
from mimawari.text import format_duration
from mimawari.watches.rentals import lists
from mimawari.watches.rentals.schemas.requests import SearchIn


@dataclass(frozen=True, slots=True)
class _Saved:
    url: str
    limit: int
    every_for: timedelta


def _make(entry: SearchIn, settings: Settings) -> _Saved:
    return _Saved(parse_list_url(entry.url, settings.rentals_url), entry.limit, entry.every_for)


async def _list(reader: Reader | Tx) -> Sequence[_Saved]:
    saved = await lists.list_saved(reader)
    return [_Saved(one.url, one.limit, one.every_for) for one in saved if one.every_for]


def _write(search: _Saved) -> Mapping[str, Any]:
    return {
        "url": search.url,
        "limit": search.limit,
        "every": format_duration(search.every_for),
    }


async def _keep(tx: Tx, search: _Saved, keeping: Keeping) -> None:
    await lists.add_list(
        tx, search.url, search.limit, search.every_for, keeping.settings, keeping.now
    )


declared = Declared(
    section="rentals",
    form=SearchIn,
    make=_make,
    key_of=lambda search: search.url,
    list=_list,
    write=_write,
    keep=_keep,
)
