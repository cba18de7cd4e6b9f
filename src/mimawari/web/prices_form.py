"""The form of a product: what it holds, what was typed into it, and how that is read."""

from typing import Any

from mimawari.watches.prices.models import ITEM_CONDITIONS, Product, Setting
from mimawari.watches.prices.schemas.requests import ProductIn
from mimawari.web import forms
from mimawari.web.visit import Visit

TEXTS = ("name", "keyword", "exclusions")
NUMBERS = ("min_price", "max_price", "category_id", "target_price", "median_percent")
NO_BOUND = ("min_price", "max_price")

Filled = dict[str, Any]
"""What stands in each field; the conditions as their numbers."""


def blank() -> Filled:
    """Return a form in which nothing stands."""
    return {**dict.fromkeys((*TEXTS, *NUMBERS), ""), "item_conditions": ()}


def fill(product: Product) -> Filled:
    """Return a form in which stands what is known of a product."""
    setting = product.setting
    # Zero means no bound, for which people leave the place empty.
    numbers = {name: str(getattr(setting, name) or "") for name in NUMBERS}
    return {
        **numbers,
        "name": product.name,
        "keyword": setting.keyword,
        "exclusions": "\n".join(setting.exclusions),
        "item_conditions": setting.item_conditions,
    }


def typed(visit: Visit) -> Filled:
    """Return what was typed, to be shown again."""
    texts = {name: visit.form.get(name, "") for name in (*TEXTS, *NUMBERS)}
    return {**texts, "item_conditions": _conditions(visit)}


def _conditions(visit: Visit) -> tuple[int, ...]:
    return tuple(number for number in ITEM_CONDITIONS if f"condition_{number}" in visit.form)


def read_product(visit: Visit, *, enabled: bool = True) -> tuple[str, Setting]:
    """Read the name and the setting that a form says, or refuse them with a sentence."""
    said = typed(visit)
    numbers = {name: forms.read_whole(said[name]) for name in NUMBERS}
    bounds = {name: 0 for name in NO_BOUND if numbers[name] is None}
    setting = {
        **numbers,
        **bounds,
        "keyword": said["keyword"].strip() or said["name"],
        "exclusions": forms.read_words(said["exclusions"]),
        "item_conditions": list(said["item_conditions"]),
        "enabled": enabled,
    }
    body = {"name": said["name"], "setting": setting}
    given = forms.check(ProductIn, body, visit.words, "product")
    return given.name, given.setting.to_setting()
