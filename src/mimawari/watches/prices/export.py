"""The products as they stand in a file of all targets."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mimawari.edges.target_file import Declared, Keeping
from mimawari.errors import BadInput
from mimawari.kernel.job import AT_ONCE
from mimawari.kernel.ports import Reader, Tx
from mimawari.settings import Settings
from mimawari.watches.prices import products
from mimawari.watches.prices.models import Product, Setting
from mimawari.watches.prices.schemas.requests import SettingIn, Text


class ProductEntry(SettingIn):
    """A product to watch."""

    name: Text


@dataclass(frozen=True, slots=True)
class _Named:
    name: str
    setting: Setting


def _make(entry: ProductEntry, _settings: Settings) -> _Named:
    given = {name: value for name, value in entry.given().items() if name != "name"}
    return _Named(entry.name, SettingIn.model_validate(_lists(given)).to_setting())


def _lists(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in given.items()
    }


async def _list(reader: Reader | Tx) -> Sequence[_Named]:
    return [_Named(one.name, one.setting) for one in await _list_all(reader)]


async def _list_all(reader: Reader | Tx) -> list[Product]:
    found: list[Product] = []
    while some := await products.list_products(reader, products.PAGE, found[-1].id if found else 0):
        found += some
    return found


def _write(product: _Named) -> Mapping[str, Any]:
    return {"name": product.name, **_lists(asdict(product.setting))}


async def _keep(tx: Tx, product: _Named, keeping: Keeping) -> None:
    if keeping.is_new:
        await products.add_product(tx, product.name, product.setting, keeping.settings, keeping.now)
        return
    same = [one for one in await _list_all(tx) if one.name == product.name]
    if len(same) > 1:
        raise BadInput(f"two products go by the name {product.name!r}; rename one of them first")
    await products.change_product(tx, same[0].id, product.name, product.setting, keeping.now)
    if product.setting.enabled:
        tx.put(products.list_job(same[0].id, priority=AT_ONCE))


declared = Declared(
    section="prices",
    form=ProductEntry,
    make=_make,
    key_of=lambda product: product.name,
    list=_list,
    write=_write,
    keep=_keep,
)
