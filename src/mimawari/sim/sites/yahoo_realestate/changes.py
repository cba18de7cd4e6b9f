"""How rooms of the simulated rentals site change while they are listed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from mimawari.sim.chance import Chance
from mimawari.sim.sites.yahoo_realestate.names import LAYOUTS, PICTURES, Room

LOW_RENT_YEN = 25_000
LOW_M2 = 1200
"""In hundredths; below these, amounts and sizes only go up."""


def change_room(chance: Chance, room: Room) -> Room:
    """Change one thing about a room, most often its rent, to what it was not before."""
    change = chance.choices(tuple(_CHANGES), tuple(_CHANGES.values()))[0]
    return change(chance, room)


def _change_rent(chance: Chance, room: Room) -> Room:
    step = chance.choice((-4, -3, -2, -2, -1, -1, 1, 2)) * 1000
    is_low = room.rent_yen < LOW_RENT_YEN
    return replace(room, rent_yen=room.rent_yen + (abs(step) if is_low else step))


def _change_fee(chance: Chance, room: Room) -> Room:
    fees = [fee for fee in (0, 2000, 3000, 5000, 8000) if fee != room.fee_yen]
    return replace(room, fee_yen=chance.choice(fees))


def _change_deposit(chance: Chance, room: Room) -> Room:
    months = [months for months in (0, 1, 1.5, 2) if months != room.deposit_months]
    return replace(room, deposit_months=chance.choice(months))


def _change_key_money(chance: Chance, room: Room) -> Room:
    months = [months for months in (0, 1, 2) if months != room.key_money_months]
    return replace(room, key_money_months=chance.choice(months))


def _change_layout(chance: Chance, room: Room) -> Room:
    """Call the same walls by the next name up or down."""
    at = LAYOUTS.index(room.layout)
    return replace(
        room, layout=chance.choice([*LAYOUTS[max(0, at - 1) : at], *LAYOUTS[at + 1 :][:1]])
    )


def _change_area(chance: Chance, room: Room) -> Room:
    step = chance.choice((-60, -30, -20, -10, -4, 5, 10, 20, 30, 60))
    is_low = room.hundredths_m2 < LOW_M2
    return replace(room, hundredths_m2=room.hundredths_m2 + (abs(step) if is_low else step))


def _change_pictures(chance: Chance, room: Room) -> Room:
    """Show others, sometimes after the first of those before."""
    others = [number for number in range(PICTURES) if number not in room.pictures]
    kept = room.pictures[: chance.randrange(2)]
    return replace(room, pictures=(*kept, *chance.sample(others, chance.randint(1, 3))))


_CHANGES: Mapping[Callable[[Chance, Room], Room], int] = MappingProxyType(
    {
        _change_rent: 60,
        _change_fee: 10,
        _change_deposit: 8,
        _change_key_money: 6,
        _change_layout: 5,
        _change_area: 6,
        _change_pictures: 5,
    }
)
