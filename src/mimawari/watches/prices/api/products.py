"""Routes of the products: add, list, show, change, remove, and their settings alone."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from mimawari.edges import csv_export, pagination
from mimawari.edges.pagination import Listing
from mimawari.edges.routes import SystemOf
from mimawari.edges.system import System
from mimawari.watches.prices import actions, products, queries
from mimawari.watches.prices.models import Product
from mimawari.watches.prices.schemas.requests import (
    ProductId,
    ProductIn,
    ProductPatch,
    ProductsAsked,
    SettingIn,
    SettingPatch,
    is_true,
)
from mimawari.watches.prices.schemas.responses import (
    NextOut,
    ProductDetailOut,
    ProductOut,
    ProductsOut,
    SettingOut,
)

products_router = APIRouter(prefix="/products")
SHOWN_CRAWLS = 10
SHOWN_ALERTS = 10
"""More than one of each kind is never open."""
_PLAIN = [name for name in ProductOut.model_fields if name != "setting"]
_COLUMNS = [*_PLAIN[:2], *SettingOut.model_fields, *_PLAIN[2:]]


@products_router.post("", status_code=201)
async def add_product(system: SystemOf, given: ProductIn) -> ProductDetailOut:
    """Watch one more product; if it is enabled, it is crawled at once."""
    setting = given.setting.to_setting()
    now = system.clock.now()
    async with system.store.edit() as tx:
        added = await products.add_product(tx, given.name, setting, system.settings, now)
        # As it was kept: a table's times go to the second.
        product = await queries.find_known(tx, added.id)
    return await _detail(system, product)


@products_router.get("", response_model=ProductsOut, responses=csv_export.CSV)
async def list_products(
    system: SystemOf, given: Annotated[ProductsAsked, Query()]
) -> ProductsOut | Response:
    """List products by id."""
    enabled = is_true(given.enabled)

    async def fetch(after: int, most: int) -> Sequence[ProductOut]:
        async with system.store.read() as reader:
            found = await products.list_products(reader, most, after, enabled=enabled)
        return [ProductOut.of(one) for one in found]

    listing = Listing(fetch=fetch, start=given.after or 0, place_of=lambda one: one.id)
    if given.format == "csv":
        pieces = pagination.walk(listing, given.limit)
        return await csv_export.download("products", _COLUMNS, pieces)
    shown, more = await pagination.find_page(listing, given.page)
    return ProductsOut(products=shown, next=shown[-1].id if more else None)


async def _find(system: System, product_id: int) -> Product:
    async with system.store.read() as reader:
        return await queries.find_known(reader, product_id)


async def _detail(system: System, product: Product) -> ProductDetailOut:
    wanted = queries.want_alerts(system, product.id, is_open=True)
    async with system.store.read() as reader:
        runs = await queries.list_runs(reader, product.id, SHOWN_CRAWLS)
        alerts = await queries.list_alerts(reader, SHOWN_ALERTS, None, wanted)
    return ProductDetailOut.on(product, runs, alerts, await _next(system, product))


async def _next(system: System, product: Product) -> NextOut:
    found = await actions.find_next(system, product)
    if found is not None:
        return NextOut.of(found)
    said = "it is not enabled, and so not crawled by itself"
    if product.setting.enabled:
        said = "it is not on the schedule; `mimawari serve` puts it there when it starts"
    return NextOut(next_at=None, reason=said, blocked_by=None, job_id=None)


@products_router.get("/{product_id}")
async def show_product(system: SystemOf, product_id: ProductId) -> ProductDetailOut:
    """Show a product: its last crawls, its open alerts, and when it is crawled next, and why."""
    return await _detail(system, await _find(system, product_id))


@products_router.put("/{product_id}")
async def replace_product(
    system: SystemOf, product_id: ProductId, given: ProductIn
) -> ProductDetailOut:
    """Describe a product anew; what is not said is as for a new one."""
    new = given.name, given.setting.to_setting()
    return await _detail(system, await actions.change_product(system, product_id, lambda _: new))


@products_router.patch("/{product_id}")
async def change_product(
    system: SystemOf, product_id: ProductId, given: ProductPatch
) -> ProductDetailOut:
    """Change some of what is known of a product; another setting is crawled at once."""
    return await _detail(system, await actions.change_product(system, product_id, given.change))


@products_router.delete("/{product_id}", status_code=204)
async def remove_product(system: SystemOf, product_id: ProductId) -> None:
    """Forget a product with all that was found of it."""
    async with system.store.edit() as tx:
        await queries.find_known(tx, product_id)
        await products.remove_product(tx, product_id)


@products_router.get("/{product_id}/setting")
async def show_setting(system: SystemOf, product_id: ProductId) -> SettingOut:
    """Show what is searched for."""
    return SettingOut.of((await _find(system, product_id)).setting)


@products_router.put("/{product_id}/setting")
async def replace_setting(system: SystemOf, product_id: ProductId, given: SettingIn) -> SettingOut:
    """Say anew what is searched for; what is not said is as for a new product."""
    setting = given.to_setting()
    changed = await actions.change_product(system, product_id, lambda known: (known.name, setting))
    return SettingOut.of(changed.setting)


@products_router.patch("/{product_id}/setting")
async def change_setting(
    system: SystemOf, product_id: ProductId, given: SettingPatch
) -> SettingOut:
    """Change some of what is searched for; another setting is crawled at once."""
    changed = await actions.change_product(
        system, product_id, lambda known: (known.name, given.to_setting(known.setting))
    )
    return SettingOut.of(changed.setting)
