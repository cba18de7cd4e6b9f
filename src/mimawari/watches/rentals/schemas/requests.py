"""What may be asked of the rentals watch, and sent to it; what else is refused with a sentence."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le
from fastapi import Path
from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from mimawari.columns import to_micros, to_time
from mimawari.edges.request_fields import (
    AS_IT_WAS,
    LINE,
    Asked,
    Id,
    Most,
    Paged,
    Search,
    Sent,
    checking,
    described,
)
from mimawari.text import parse_duration, plain_digits, whole_number
from mimawari.watches.rentals.models import MOST_ROOMS, USUAL_ROOMS, Kind, Status
from mimawari.watches.rentals.queries import Place, Sort, Wanted

LARGEST_YEN = 2**31 - 1
LARGEST_AREA = 1_000_000
LARGEST_CHANGE = 2**53 - 1
MOST_LAYOUT = 64

_PROPERTY = "_?[0-9a-fA-F]{44}"
_PLACE = rf"^[0-9]{{1,16}}(\.[0-9]{{2}})?~{_PROPERTY}$"
_EVERY = "^(([1-9][0-9]?|[1-6][0-9]{2}|7[01][0-9]|720)h|([1-9]|[12][0-9]|30)d)$"
_SITE = r"^https://realestate\.yahoo\.co\.jp/rent"
_LIST = rf"{_SITE}/search/([0-9A-Za-z_-]{{1,40}}/){{1,8}}(\?[0-9A-Za-z%&=_.-]{{0,400}})?$"
_DETAIL = rf"{_SITE}/detail/{_PROPERTY}/?$"


def _address(pattern: str, example: str) -> WithJsonSchema:
    """Describe addresses of the site; where it is set to be elsewhere, they are others."""
    found = f"https://realestate.yahoo.co.jp/rent/{example}"
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": [found]})


def read_place(text: str, sort: Sort) -> Place:
    """Read where a page of properties ended."""
    number, _, property_id = text.partition("~")
    value: Any
    match sort:
        case Sort.RENT:
            value = min(int(float(number)), LARGEST_YEN)
        case Sort.AREA:
            value = float(number)
        case _:
            value = to_time(int(number.partition(".")[0]))
    return Place(value, property_id)


def write_place(place: Place) -> str:
    """Write where a page of properties ended, as it is asked for."""
    value = place.value
    match value:
        case datetime():
            number = str(to_micros(value))
        case float():
            number = f"{value:.2f}"
        case _:
            number = str(value)
    return f"{number}~{place.property_id}"


ListUrl = Annotated[str, _address(_LIST, "search/03/13/13104/")]
DetailUrl = Annotated[
    str, _address(_DETAIL, "detail/_0000012345670123456789abcdef0123456789abcdef/")
]
PropertyId = Annotated[str, Path(pattern=f"^{_PROPERTY}$", description="A property's id.")]
RunId = Annotated[str, Path(pattern="^[0-9a-f-]{36}$", description="The id of a walk.")]
SearchId = Annotated[Id, Path(description="The id of a saved search.")]
Rooms = Annotated[int, Ge(1), Le(MOST_ROOMS), BeforeValidator(whole_number)]
Yen = Annotated[int, Ge(0), Le(LARGEST_YEN), BeforeValidator(plain_digits)]
Area = Annotated[float, Field(ge=0, le=LARGEST_AREA, allow_inf_nan=False)]
Layout = Annotated[
    str,
    AfterValidator(checking(LINE, "write a layout as the site does, like 1LDK", MOST_LAYOUT)),
    described(LINE, maxLength=MOST_LAYOUT),
]
After = Annotated[str, AfterValidator(checking(_PLACE, AS_IT_WAS)), described(_PLACE)]
Every = Annotated[
    str,
    AfterValidator(checking(_EVERY, "write whole hours or days, like 6h or 1d: from 1h to 30d")),
    described(_EVERY),
]
ChangeId = Annotated[int, Ge(1), Le(LARGEST_CHANGE), BeforeValidator(plain_digits)]


class ListIn(Sent):
    """A list to walk over."""

    url: ListUrl = Field(description="A list of the site's, as a browser shows its address.")
    limit: Rooms = Field(default=USUAL_ROOMS, description="How many rooms at the most.")


class DetailIn(Sent):
    """A property to read."""

    url: DetailUrl = Field(description="A property's own page.")


class SearchIn(ListIn):
    """A list to walk over now and again."""

    every: Every = Field(description="How often, in whole hours or days.", examples=["6h"])

    @property
    def every_for(self) -> timedelta:
        """How long after a walk comes the next."""
        return parse_duration(self.every)


class CleanupIn(Sent):
    """How to clean up."""

    dry_run: bool = Field(default=True, description="Count what would be cleared; change nothing.")


class PropertiesAsked(Paged):
    """Which properties, in which order."""

    status: Status | None = None
    min_rent: Yen | None = Field(default=None, description="In yen a month, without fees.")
    max_rent: Yen | None = Field(default=None, description="In yen a month, without fees.")
    min_area: Area | None = Field(default=None, description="In square metres.")
    layout: Layout | None = Field(default=None, description="Exactly as the site has it.")
    search: Search = Field(default="", description="Part of a name, an address or a station.")
    sort: Sort = Field(
        default=Sort.NEWEST,
        description="By first sighting, last change, rent, area, or last sighting.",
    )
    order: Literal["asc", "desc"] = "desc"
    after: After | None = Field(
        default=None, description="The `next` of the page before; keep the same `sort`."
    )

    @property
    def wanted(self) -> Wanted:
        """Tell the reads what is wanted."""
        return Wanted(
            status=self.status,
            least_rent_yen=self.min_rent,
            most_rent_yen=self.max_rent,
            least_area_m2=self.min_area,
            layout=self.layout,
            search=self.search,
            sort=self.sort,
            is_ascending=self.order == "asc",
        )


class HistoryAsked(Asked):
    """How much of a property's history."""

    limit: Most = Field(default=100, description="How many snapshots, and how many changes.")


class ChangesAsked(Paged):
    """Which changes."""

    kind: Kind | None = None
    property_id: Annotated[str, Field(pattern=f"^{_PROPERTY}$")] | None = None
    before: ChangeId | None = Field(default=None, description="The `next` of the page before.")
