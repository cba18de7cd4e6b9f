"""How to find out whether 404s in a row are true: the control request of the rentals site."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from mimawari.columns import EPOCH
from mimawari.kernel.context import Context
from mimawari.kernel.control import Control, make_check
from mimawari.kernel.job import Job
from mimawari.kernel.not_found import NotFound
from mimawari.kernel.ports import Tx
from mimawari.kernel.watch import task
from mimawari.sites import yahoo_realestate
from mimawari.sites.yahoo_realestate import SITE
from mimawari.watches.rentals import lists, sync, tasks

KIND = "rentals.control"


async def fetch_item(ctx: Context, job: Job, url: str) -> None:
    """Read a property's own page, and keep nothing of it."""
    async with tasks.heeding(job, ctx, asked=False):
        await yahoo_realestate.fetch_detail(ctx.http, url, site_url=ctx.settings.rentals_url)


async def fetch_list(ctx: Context, job: Job, turn: int) -> Sequence[str]:
    """Read one of the lists, or the front page, by turns: a list alone may be gone.

    The front page shows no property; the one that a list showed last stands for it.
    """
    async with ctx.store.read() as reader:
        urls = await lists.list_urls(reader)
        last = await lists.find_shown(reader, EPOCH)
    place = turn % (len(urls) + 1)
    async with tasks.heeding(job, ctx, asked=False):
        if place == len(urls):
            await ctx.http.fetch(SITE, f"{ctx.settings.rentals_url}/rent/")
            return () if last is None else (last,)
        page = await yahoo_realestate.fetch_list(
            ctx.http, urls[place], site_url=ctx.settings.rentals_url
        )
    return [room.detail_url for room in page.rooms]


async def confirm(tx: Tx, ctx: Context, items: Sequence[NotFound]) -> None:
    """Tell people which properties are off the market."""
    del ctx
    for item in items:
        if "property_id" in item.undo:
            await sync.tell_gone(tx, item.undo)


async def restore(tx: Tx, items: Sequence[NotFound]) -> None:
    """Give properties and lists the state back that they had before their 404."""
    for item in items:
        undo: dict[str, Any] = dict(item.undo)
        if "property_id" in undo:
            await sync.restore_gone(tx, undo)
        elif "list_id" in undo:
            await lists.restore_gone(tx, undo["list_id"], item.at)


CONTROL = Control(
    site=SITE.name,
    kind=KIND,
    settle_after=timedelta(hours=1),
    detail_limit=tasks.DETAIL,
    list_limit=tasks.LIST,
    find_shown=lists.find_shown,
    fetch_item=fetch_item,
    fetch_list=fetch_list,
    confirm=confirm,
    restore=restore,
)
check_site = task(
    KIND, lease="2m", timeout="10m", attempts=1000, backoff="1m 5m 15m", site=SITE.name
)(make_check(CONTROL))
