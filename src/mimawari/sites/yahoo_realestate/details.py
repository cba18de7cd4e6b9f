"""Reads a property's own page: its embedded context first, what it shows second."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from mimawari.errors import BadInput, Invalid
from mimawari.net.html import parse_html
from mimawari.sites.yahoo_realestate import labels
from mimawari.sites.yahoo_realestate.addresses import is_same_property, parse_detail_url
from mimawari.sites.yahoo_realestate.context import find_context
from mimawari.sites.yahoo_realestate.models import Property
from mimawari.sites.yahoo_realestate.rows import labels_of
from mimawari.sites.yahoo_realestate.shown import read_shown
from mimawari.sites.yen import MOST_AREA, MOST_YEN, Access, parse_yen
from mimawari.text import one_line

MOST_IMAGES = 50
MOST_URL = 2000

_SITE_NAME = re.compile(
    r"[\s|\uff5c-]*【? ?Yahoo[!\uff01]? ?不動産 ?】?[\s|\uff5c-]*", re.IGNORECASE
)
_SUFFIX = re.compile(r"の?賃貸物件詳細\Z")
_FEES = ("管理費・共益費等", "管理費・共益費", "管理費等", "管理費", "共益費")
_ICONS = "https://s.yimg.jp/images/"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Sources:
    """The two places where a page says the same: its context by key, and the page by name."""

    context: dict[str, Any]
    named: dict[str, str]

    def read(self, read: Callable[[Any], T | None], *places: str) -> T | None:
        """Return the first value that can be read; a broken one is as good as none."""
        for value in map(self.find, places):
            try:
                found = read(value)
            except BadInput:
                continue
            if found is not None:
                return found
        return None

    def find(self, place: str) -> Any:
        """Return what stands at a key such as A.B of the context, or under a Japanese name."""
        if not place.isascii():
            return self.named.get(place)
        value: Any = self.context
        for key in place.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        return value


def parse_detail(body: bytes, url: str) -> Property:
    """Read a property; a page without a title, or without a rent or why, is drift."""
    try:
        detail_url, property_id = parse_detail_url(url, url)
    except BadInput as error:
        raise Invalid(f"this is no property's page: {error}", page=body) from error
    shown = read_shown(parse_html(body), property_id)
    sources = _Sources(_find_property(body, property_id), shown.named)
    title = next(filter(None, map(_clean_title, shown.titles)), None)
    if title is None:
        raise Invalid("the property has no title", page=body)
    rent_yen, rent_note = _find_rent(sources, body)
    deposit = partial(labels.read_deposit, rent_yen=rent_yen)
    ways = labels_of(sources.find("Transports"))
    return Property(
        property_id=property_id,
        detail_url=detail_url,
        title=title,
        building_name=sources.read(labels.read_text, "StructureView.BuildingName", "建物名"),
        rent_yen=rent_yen,
        rent_note=rent_note,
        fee_yen=sources.read(labels.read_fee, "MonthlyManagementCostLabel", *_FEES),
        deposit_yen=sources.read(deposit, "SecurityDepositLabel", "敷金"),
        key_money_yen=sources.read(deposit, "KeyMoneyLabel", "礼金"),
        layout=sources.read(labels.read_layout, "DetailsView.RoomLayoutBreakdown", "間取り"),
        area_m2=sources.read(_read_area, "MonopolyArea", "MonopolyAreaLabel", "専有面積"),
        floor=sources.read(labels.read_floor, "StructureView.FloorNum", "階", "所在階"),
        years_old=sources.read(labels.read_years, "YearsOld", "築年数"),
        built_on=sources.read(labels.read_built_on, "BuiltOn", "築年数", "築年月"),
        address=sources.read(labels.read_text, "LocationView.AddressName", "所在地"),
        stations=_read_stations(ways) or _read_stations(shown.stations),
        images=_read_images(_images_in(sources.context), url) or _read_images(shown.images, url),
    )


def _find_property(body: bytes, property_id: str) -> dict[str, Any]:
    """Return what the context says of this property; nothing if it cannot be read."""
    context = find_context(body.decode("utf-8", "replace")) or {}
    found = context.get("property")
    if not isinstance(found, dict):
        return {}
    named = found.get("PropertyId", property_id)
    if not isinstance(named, str) or not is_same_property(property_id, named):
        raise Invalid(f"the page is of property {one_line(str(named), most=60)!r}", page=body)
    return found


def _find_rent(sources: _Sources, body: bytes) -> tuple[int | None, str | None]:
    """Return the rent, or else the site's word on why there is none."""
    rent_yen = sources.read(_read_rent, "Price", "PriceLabel", "賃料")
    if rent_yen is not None:
        return rent_yen, None
    note = sources.read(_read_rent_note, "PriceLabel", "賃料")
    if note is None:
        raise Invalid("the property has no rent that can be read", page=body)
    return None, note


def _read_rent(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 < value <= MOST_YEN else None
    return labels.read_rent(value)


def _read_rent_note(value: Any) -> str | None:
    label = labels.read_label(value)
    return label if label and parse_yen(label) is None else None


def _read_area(value: Any) -> Decimal | None:
    """Read an area from a label, or from a number of hundredths."""
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value).scaleb(-2) if 0 < value <= MOST_AREA * 100 else None
    return labels.read_area(value)


def _read_stations(ways: tuple[Any, ...]) -> tuple[Access, ...]:
    try:
        return labels.read_stations(ways)
    except BadInput:
        return ()


def _clean_title(title: str) -> str | None:
    """Return a title without the site's own words; None if nothing is left."""
    plain = _SUFFIX.sub("", _SITE_NAME.sub(" ", one_line(title)).strip()).strip()
    return plain if any(sign.isalnum() for sign in plain) else None


def _images_in(context: dict[str, Any]) -> Iterator[Any]:
    many = context.get("ResizedExternalImageUrls")
    for image in many if isinstance(many, list) else ():
        yield image.get("Url") if isinstance(image, dict) else image
    yield context.get("ExternalImageUrl")
    yield context.get("RoomLayoutImageUrl")


def _read_images(images: Iterator[Any] | tuple[Any, ...], url: str) -> tuple[str, ...]:
    """Return the addresses of images that can be shown safely, each once."""
    found = dict.fromkeys(filter(None, (_read_image(image, url) for image in images)))
    return tuple(islice(found, MOST_IMAGES))


def _read_image(image: Any, url: str) -> str | None:
    if not isinstance(image, str) or len(image) > MOST_URL or not image.isprintable():
        return None
    link = f"https:{image}" if image.startswith("//") else image
    try:
        target = link if urlsplit(link).scheme else urljoin(url, link)
        parts = urlsplit(target)
    except ValueError:
        return None
    # A page that is safe itself shows nothing that is not.
    is_safe = parts.scheme in {"https", urlsplit(url).scheme}
    is_usable = is_safe and parts.hostname and " " not in target
    return target if is_usable and not target.startswith(_ICONS) else None
