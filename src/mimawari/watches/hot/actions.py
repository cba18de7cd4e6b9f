"""What people ask of the watch: IPs added, changed and removed, and a crawl now."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from mimawari.edges.request_job import TRIES
from mimawari.edges.system import System
from mimawari.errors import BadInput, NotFound
from mimawari.kernel.ports import Reader
from mimawari.kernel.why import Why, why
from mimawari.text import one_line
from mimawari.watches.hot import franchises, queries
from mimawari.watches.hot.models import Ip, NewIp
from mimawari.watches.hot.tables import ips


class Taken(BadInput):
    """What is asked for stands against what is there."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The crawl that will be, or is, made."""

    why: Why
    is_new: bool


async def find_known(reader: Reader, ip_id: int) -> Ip:
    """Find an IP, or raise NotFound."""
    ip = await franchises.find_ip(reader, ip_id)
    if ip is None:
        raise _unknown(ip_id)
    return ip


def _unknown(ip_id: int) -> NotFound:
    return NotFound(f"no IP goes by the id {ip_id}; GET /api/v1/ips lists them")


async def add_ip(system: System, new: NewIp) -> Ip:
    """Watch one more IP, from now on."""
    try:
        async with system.store.edit() as tx:
            (added,) = await franchises.add_ips(tx, [new], system.settings, system.clock.now())
    except IntegrityError as error:
        raise await _taken(system, new) from error
    return added


async def _taken(system: System, new: NewIp) -> Taken:
    async with system.store.read() as reader:
        found = await franchises.find_by_keyword(reader, [new.keyword])
    owners = [f"IP {ip.id} ({one_line(ip.name, most=60)})" for ip in found.values()]
    owner = owners[0] if owners else "another IP"
    shown = one_line(new.keyword, most=60)
    return Taken(
        f"{owner} has the keyword {shown!r} already; change that IP, or take another keyword"
    )


async def change_ip(system: System, ip_id: int, change: Callable[[Ip], NewIp]) -> Ip:
    """Describe an IP anew, by what is known of it."""
    new: NewIp | None = None
    try:
        async with system.store.edit() as tx:
            # Held from here on, so that of two changes at once neither undoes the other.
            await tx.execute(select(ips.c.id).where(ips.c.id == ip_id).with_for_update())
            new = change(await find_known(tx, ip_id))
            now = system.clock.now()
            changed = await franchises.change_ip(tx, ip_id, new, system.settings, now)
    except IntegrityError as error:
        if new is None:
            raise
        raise await _taken(system, new) from error
    if changed is None:
        raise _unknown(ip_id)
    await queries.drop_kept(system.store.cache, ip_id)
    return changed


async def remove_ip(system: System, ip_id: int) -> None:
    """Forget an IP with all that was kept of it."""
    async with system.store.edit() as tx:
        was_there = await franchises.remove_ip(tx, ip_id)
    if not was_there:
        raise _unknown(ip_id)
    await queries.drop_kept(system.store.cache, ip_id)


async def ask_for_crawl(system: System, ip_id: int) -> Asked:
    """Have an IP crawled now; while one crawl of it is live there is no second."""
    store = system.store
    async with store.read() as reader:
        ip = await find_known(reader, ip_id)
    for _ in range(TRIES):
        new = await store.queue.put([franchises.crawl_now(ip, system.settings)])
        name = new[0] if new else franchises.member_of(ip_id)
        found = await why(store, system.clock, system.watches, name)
        # A crawl that was live a moment ago may be over by now; then there is room for another.
        if found is not None and found.job_id is not None:
            return Asked(found, bool(new))
    raise Taken("crawls of this IP end faster than they can be seen; ask again")
