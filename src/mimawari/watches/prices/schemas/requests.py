"""What may be asked of the prices watch, and sent to it; what else is refused with a sentence."""

from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from fastapi import Path
from pydantic import AfterValidator, BeforeValidator, Field

from mimawari.columns import to_micros, to_time
from mimawari.edges.request_fields import (
    AS_IT_WAS,
    FILLED,
    LARGEST_ID,
    Asked,
    Form,
    Id,
    Paged,
    Patch,
    Search,
    Sent,
    checking,
    described,
    filling,
)
from mimawari.errors import BadInput
from mimawari.text import plain_digits, whole_number
from mimawari.watches.prices.market import USUAL_DAYS
from mimawari.watches.prices.models import (
    ITEM_CONDITIONS,
    MOST_YEN,
    Product,
    SellerType,
    SellingStatus,
    Setting,
)
from mimawari.watches.prices.queries import Place, Sort, Wanted
from mimawari.watches.prices.rules import fold

MOST_TEXT = 200
MOST_EXCLUSIONS = 20
MOST_EXCLUSION_TEXT = 100
MOST_DAYS = 365
MOST_PERCENT = 99

_PLACE = "^[0-9]{1,16}~[0-9]{1,10}$"
_STATUSES = {"on_sale": SellingStatus.ON_SALE, "sold": SellingStatus.SOLD_OUT}
_SELLERS = {"user": SellerType.USER, "shop": SellerType.SHOP}

Flag = Literal["true", "false"]
ProductId = Annotated[Id, Path(description="A product's id.")]
SentId = Annotated[int, Ge(1), Le(LARGEST_ID), BeforeValidator(whole_number)]
Text = Annotated[
    str,
    AfterValidator(filling(MOST_TEXT)),
    described(FILLED, minLength=1, maxLength=MOST_TEXT),
]
Exclusion = Annotated[
    str,
    AfterValidator(filling(MOST_EXCLUSION_TEXT)),
    described(FILLED, minLength=1, maxLength=MOST_EXCLUSION_TEXT),
]
Bound = Annotated[int, Ge(0), Le(MOST_YEN), BeforeValidator(whole_number)]
Yen = Annotated[int, Ge(1), Le(MOST_YEN), BeforeValidator(whole_number)]
Percent = Annotated[int, Ge(1), Le(MOST_PERCENT), BeforeValidator(whole_number)]
Condition = Annotated[
    int, Ge(ITEM_CONDITIONS[0]), Le(ITEM_CONDITIONS[-1]), BeforeValidator(whole_number)
]
AskedYen = Annotated[int, Ge(0), Le(MOST_YEN), BeforeValidator(plain_digits)]
Days = Annotated[int, Ge(1), Le(MOST_DAYS), BeforeValidator(plain_digits)]
After = Annotated[str, AfterValidator(checking(_PLACE, AS_IT_WAS)), described(_PLACE)]


def is_true(flag: Flag | None) -> bool | None:
    """Read what was said; None if nothing was."""
    return None if flag is None else flag == "true"


def read_place(text: str, sort: Sort) -> Place:
    """Read where a page of results ended."""
    number, _, result_id = text.partition("~")
    value = to_time(int(number)) if sort is Sort.UPDATED else min(int(number), LARGEST_ID)
    return Place(value, min(int(result_id), LARGEST_ID))


def write_place(place: Place) -> str:
    """Write where a page of results ended, as it is asked for."""
    value = place.value
    number = to_micros(value) if isinstance(value, datetime) else value
    return f"{number}~{place.result_id}"


def check_setting(setting: Setting) -> Setting:
    """Refuse a setting whose parts contradict each other."""
    if 0 < setting.max_price < setting.min_price:
        raise BadInput("max_price is less than min_price; 0 means no bound")
    keyword = fold(setting.keyword)
    for exclusion in setting.exclusions:
        # The site takes the words of an exclusion one by one.
        for word in fold(exclusion).split():
            if word in keyword:
                raise BadInput(
                    f"the exclusion {exclusion!r} would exclude everything:"
                    f" {word!r} is part of the keyword; take it out of the exclusions"
                )
    return setting


class _SettingFields(Sent):
    category_id: SentId | None = Field(
        default=None, description="A category of the site's, by its number.", examples=[1328]
    )
    min_price: Bound = Field(default=0, description="In yen; 0 means no bound.", examples=[1000])
    max_price: Bound = Field(
        default=0, description="In yen, not less than min_price; 0 means no bound.", examples=[0]
    )
    enabled: bool = Field(default=True, description="Whether it is crawled by itself.")
    exclusions: list[Exclusion] = Field(
        default=[],
        max_length=MOST_EXCLUSIONS,
        description="What is left out: names with any of these in them.",
        examples=[["ジャンク", "まとめ売り"]],
    )
    item_conditions: list[Condition] = Field(
        default=[],
        max_length=len(ITEM_CONDITIONS),
        description="How worn, in the site's numbers: 1 is new, 6 is bad; empty means any.",
        examples=[[1, 2]],
    )
    target_price: Yen | None = Field(
        default=None, description="Tell when one is on sale for this or less.", examples=[25_000]
    )
    median_percent: Percent | None = Field(
        default=None,
        description="Tell when one is on sale for so many percent under the median.",
        examples=[20],
    )

    def given(self) -> dict[str, Any]:
        """Return what was said, as a setting holds it."""
        said = self.model_dump(exclude_unset=True)
        if "exclusions" in said:
            said["exclusions"] = tuple(dict.fromkeys(self.exclusions))
        if "item_conditions" in said:
            said["item_conditions"] = tuple(sorted(set(self.item_conditions)))
        return said


class SettingIn(_SettingFields):
    """What to search for; what is not said is as for a new product."""

    keyword: Text = Field(description="What to search for.", examples=["Nintendo Switch 有機EL"])

    def to_setting(self) -> Setting:
        """Return it as the watch takes it."""
        return check_setting(Setting(**self.given()))


class SettingPatch(_SettingFields, Patch):
    """What to change of a setting; what is not named stays as it is."""

    keyword: Text = Field(
        default="", description="What to search for.", examples=["Nintendo Switch 有機EL"]
    )

    def to_setting(self, known: Setting) -> Setting:
        """Return the setting with what is named changed."""
        return check_setting(replace(known, **self.given()))


class ProductIn(Sent):
    """A product to watch, or to describe anew."""

    name: Text = Field(description="What you call it.", examples=["Switch 有機EL"])
    setting: SettingIn


class ProductPatch(Patch):
    """What to change of a product; what is not named stays as it is."""

    name: Text = Field(default="", description="What you call it.", examples=["Switch 有機EL"])
    setting: SettingPatch = SettingPatch()

    def change(self, known: Product) -> tuple[str, Setting]:
        """Tell the name and the setting that a product is to have."""
        return self.name or known.name, self.setting.to_setting(known.setting)


class ExecuteIn(Sent):
    """What to crawl now."""

    product_id: SentId | None = Field(
        default=None,
        alias="productId",
        description="One product, enabled or not; all that are enabled if not said.",
        examples=[1],
    )


class ExecuteAsked(Asked):
    """Whether to wait for the crawls."""

    wait: Flag = Field(
        default="true", description="Wait for the lists, up to 10 minutes; details follow later."
    )


class ProductsAsked(Paged):
    """Which products."""

    after: Id | None = Field(default=None, description="The `next` of the page before.")
    enabled: Flag | None = None


class ResultsAsked(Paged):
    """Which results of a product, in which order."""

    status: Literal["on_sale", "sold"] | None = None
    seller: Literal["user", "shop"] | None = None
    min_price: AskedYen | None = Field(default=None, description="In yen.")
    max_price: AskedYen | None = Field(default=None, description="In yen.")
    search: Search = Field(default="", description="Part of a name.")
    outlier: Flag | None = Field(
        default=None, description="Only those that are left out of the figures, or only others."
    )
    sort: Sort = Field(default=Sort.NEWEST, description="By first sighting, price, or last change.")
    order: Literal["asc", "desc"] = "desc"
    after: After | None = Field(
        default=None, description="The `next` of the page before; keep the same `sort`."
    )

    @property
    def wanted(self) -> Wanted:
        """Tell the reads what is wanted."""
        return Wanted(
            status=_STATUSES[self.status] if self.status else None,
            seller=_SELLERS[self.seller] if self.seller else None,
            least_yen=self.min_price,
            most_yen=self.max_price,
            search=self.search,
            is_outlier=is_true(self.outlier),
            sort=self.sort,
            is_ascending=self.order == "asc",
        )


class RemovedAsked(Paged):
    """Which of the results that were taken out."""

    before: Id | None = Field(default=None, description="The `next` of the page before.")


class MarketAsked(Asked):
    """Over how many days."""

    days: Days = Field(default=USUAL_DAYS, description="So many days back, with today.")
    format: Form = Field(default="json", description="`csv` gives the days.")


class AlertsAsked(Paged):
    """Which alerts."""

    product_id: Id | None = None
    is_open: Flag | None = Field(
        default=None, alias="open", description="Only those that are open, or only those over."
    )
    before: Id | None = Field(default=None, description="The `next` of the page before.")
