"""What the pages of the rentals site say."""

from dataclasses import dataclass
from decimal import Decimal

from mimawari.sites.contract import Refused
from mimawari.sites.yen import Access


@dataclass(frozen=True, slots=True)
class Coordinates:
    """Where a building stands, in degrees of WGS 84."""

    latitude: float
    longitude: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A room on a list; a rent of None is one that the site wants to be asked for."""

    property_id: str
    detail_url: str
    structure_id: str | None
    building_name: str | None
    rent_yen: int | None
    fee_yen: int | None
    deposit_yen: int | None
    key_money_yen: int | None
    layout: str | None
    area_m2: Decimal | None
    floor: int | None
    years_old: int | None
    address: str | None
    stations: tuple[Access, ...]
    coordinates: Coordinates | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage:
    """A page of a list, with the rooms on it that could not be used and where it goes on."""

    rooms: tuple[Room, ...]
    refused: tuple[Refused, ...]
    next_url: str | None
    current_page: int | None
    last_page: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A room on its own page; without a rent, `rent_note` says why in the site's words."""

    property_id: str
    detail_url: str
    title: str
    building_name: str | None
    rent_yen: int | None
    rent_note: str | None
    fee_yen: int | None
    deposit_yen: int | None
    key_money_yen: int | None
    layout: str | None
    area_m2: Decimal | None
    floor: int | None
    years_old: int | None
    built_on: str | None
    address: str | None
    stations: tuple[Access, ...]
    images: tuple[str, ...]
