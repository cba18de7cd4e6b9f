"""The IPs as they stand in a file of all targets."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from sqlalchemy import select

from mimawari.edges.request_fields import Sent, filling
from mimawari.edges.target_file import Declared, Keeping
from mimawari.kernel.ports import Reader, Tx
from mimawari.settings import Settings
from mimawari.watches.hot import franchises, import_file
from mimawari.watches.hot.models import MOST_TEXT, Ip, NewIp
from mimawari.watches.hot.sync import make_ip
from mimawari.watches.hot.tables import ips

Text = Annotated[str, AfterValidator(filling(MOST_TEXT))]


class IpEntry(Sent):
    """A franchise to watch."""

    name: Text
    keyword: Text | None = None
    name_en: str = ""
    weight: float = 1.0
    active: bool = True
    tags: list[str] = Field(default_factory=list)


def _make(entry: IpEntry, _settings: Settings) -> NewIp:
    return import_file.make_new(entry.model_dump(exclude_none=True))


async def _list(reader: Reader | Tx) -> Sequence[NewIp]:
    rows = await reader.execute(select(ips).order_by(ips.c.id))
    return [_plain(make_ip(row)) for row in rows]


def _plain(ip: Ip) -> NewIp:
    return NewIp(
        name=ip.name,
        name_en=ip.name_en,
        keyword=ip.keyword,
        weight=ip.weight,
        active=ip.active,
        tags=ip.tags,
    )


def _write(ip: NewIp) -> Mapping[str, Any]:
    return {
        "name": ip.name,
        "keyword": ip.keyword,
        "name_en": ip.name_en,
        "weight": ip.weight,
        "active": ip.active,
        "tags": list(ip.tags),
    }


async def _keep(tx: Tx, ip: NewIp, keeping: Keeping) -> None:
    if keeping.is_new:
        await franchises.add_ips(tx, [ip], keeping.settings, keeping.now)
        return
    found = (await franchises.find_by_keyword(tx, [ip.keyword]))[ip.keyword]
    await franchises.change_ip(tx, found.id, ip, keeping.settings, keeping.now)


declared = Declared(
    section="hot",
    form=IpEntry,
    make=_make,
    key_of=lambda ip: ip.keyword,
    list=_list,
    write=_write,
    keep=_keep,
)
