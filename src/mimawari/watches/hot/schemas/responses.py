"""What the API of the hot watch takes in and gives out."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field

from mimawari.edges.request_fields import FILLED, LINE, Patch, Sent, checking, described, filling
from mimawari.kernel.values import Entry
from mimawari.settings import Settings
from mimawari.watches.hot import rules
from mimawari.watches.hot.franchises import pace_of
from mimawari.watches.hot.models import (
    MOST_TAG_TEXT,
    MOST_TAGS,
    MOST_TEXT,
    Coverage,
    Ip,
    Kind,
    NewIp,
    Status,
)
from mimawari.watches.hot.rules import HEAVIEST, LIGHTEST
from mimawari.watches.hot.sync import make_coverage

Name = Annotated[
    str,
    AfterValidator(filling(MOST_TEXT)),
    described(FILLED, minLength=1, maxLength=MOST_TEXT),
]
Tag = Annotated[
    str,
    AfterValidator(filling(MOST_TAG_TEXT)),
    described(FILLED, minLength=1, maxLength=MOST_TAG_TEXT),
]
English = Annotated[
    str,
    AfterValidator(
        checking(LINE, f"must have at most {MOST_TEXT} characters, none of control", MOST_TEXT)
    ),
    AfterValidator(str.strip),
    described(LINE, maxLength=MOST_TEXT),
]
Weight = Annotated[
    float,
    Field(ge=LIGHTEST, le=HEAVIEST, allow_inf_nan=False, description="How often; 1 is usual."),
]
Tags = Annotated[list[Tag], Field(max_length=MOST_TAGS)]


class IpIn(Sent):
    """An IP to watch."""

    name: Name
    keyword: English = Field(default="", description="What to search for; the name if not said.")
    name_en: English = ""
    weight: Weight = 1.0
    active: bool = True
    tags: Tags = Field(default=[])

    def to_new(self) -> NewIp:
        """Return it as the watch takes it."""
        return NewIp(
            name=self.name,
            keyword=self.keyword or self.name,
            name_en=self.name_en,
            weight=self.weight,
            active=self.active,
            tags=tuple(dict.fromkeys(self.tags)),
        )


class IpPatch(Patch):
    """What to change of an IP; what is not named stays as it is."""

    name: Name = ""
    keyword: Name = ""
    name_en: English = ""
    weight: Weight = 1.0
    active: bool = True
    tags: Tags = Field(default=[])

    def to_new(self, ip: Ip) -> NewIp:
        """Return the IP with what is named changed."""
        now = {field: getattr(ip, field) for field in type(self).model_fields}
        given = self.model_dump(exclude_unset=True)
        new = {**now, **given}
        return NewIp(**{**new, "tags": tuple(dict.fromkeys(new["tags"]))})


class CoverageOut(BaseModel):
    """How much of the market a crawl could see; a cap is never a fact."""

    pages_asked: int
    pages_read: int
    capped_on_sale: bool = Field(description="There was more on sale than the pages asked for.")
    capped_sold: bool = Field(description="There was more sold than the pages asked for.")
    is_whole: bool = Field(description="Every page that was asked for was read.")
    page_errors: list[str]

    @classmethod
    def of(cls, coverage: Coverage) -> "CoverageOut":
        """Show a coverage."""
        return cls.model_validate(coverage, from_attributes=True)


def note_of(ip: Ip) -> str | None:
    """Say what keeps an IP's figures from being the whole truth."""
    seen, said = ip.coverage, []
    if ip.baseline_at is None:
        said.append("nothing is counted before the first crawl that reads every page")
    capped = (("on sale", seen.capped_on_sale), ("sold", seen.capped_sold))
    sides = [side for side, is_capped in capped if is_capped]
    if sides:
        said.append(
            f"the last crawl saw only the newest pages of what is {' and '.join(sides)};"
            " the real figures may be higher"
        )
    if seen.pages_read < seen.pages_asked:
        missing = seen.pages_asked - seen.pages_read
        said.append(f"{missing} of {seen.pages_asked} pages of the last crawl could not be read")
    return "; ".join(said) or None


class IpOut(BaseModel):
    """An IP that is watched."""

    id: int
    name: str
    name_en: str
    keyword: str
    weight: float
    active: bool
    tags: list[str]
    interval_seconds: float = Field(description="How long after a crawl comes the next.")
    last_crawled_at: datetime | None
    baseline_at: datetime | None = Field(description="Before it nothing is counted.")
    failures: int = Field(description="How many crawls in a row have failed.")
    last_error: str
    coverage: CoverageOut
    note: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, ip: Ip, settings: Settings) -> "IpOut":
        """Show an IP."""
        return cls(**_shown(ip, settings))


def _shown(ip: Ip, settings: Settings) -> dict[str, Any]:
    plain = set(IpOut.model_fields) - {"interval_seconds", "coverage", "note", "tags"}
    return {
        **{field: getattr(ip, field) for field in plain},
        "tags": list(ip.tags),
        "interval_seconds": rules.interval(ip.weight, pace_of(settings)).total_seconds(),
        "coverage": CoverageOut.of(ip.coverage),
        "note": note_of(ip),
    }


class IpDetailOut(IpOut):
    """An IP, and when it is crawled next."""

    next_at: datetime | None
    reason: str | None = Field(description="Why then.")

    @classmethod
    def on(cls, entry: Entry | None, ip: Ip, settings: Settings) -> "IpDetailOut":
        """Show an IP with its place on the schedule."""
        reason = entry.reason if entry else None
        if not ip.active:
            reason = "it is not active, and so not crawled"
        return cls(**_shown(ip, settings), next_at=entry.next_at if entry else None, reason=reason)


class IpsOut(BaseModel):
    """A page of IPs, by id."""

    ips: list[IpOut]
    next: int | None = Field(description="Give this as `after` for the next page.")


class TriggeredOut(BaseModel):
    """The crawl that will be, or is, made."""

    job_id: str
    state: str
    next_at: datetime | None
    reason: str = Field(description="What it waits for.")
    is_new: bool = Field(description="False if one was asked for or under way already.")


class WindowOut(BaseModel):
    """Whole hours, the current one left out."""

    start_at: datetime
    end_at: datetime


class LiquidityOut(BaseModel):
    """How much was sold of what came in."""

    ip_id: int
    hours: int
    window: WindowOut
    inflow: int
    outflow: int
    liquidity: float | None = Field(description="Null if nothing came in.")
    score: float
    hours_observed: int = Field(description="In how many of the hours there was a crawl.")
    coverage: CoverageOut
    note: str | None


class FlowOut(BaseModel):
    """What came and went, and what newly sold items cost."""

    inflow: int
    outflow: int
    liquidity: float | None
    samples: int
    average_yen: int | None
    median_yen: int | None
    least_yen: int | None
    most_yen: int | None
    stddev_yen: int | None


def _flow(row: Any) -> dict[str, Any]:
    names = ("average_yen", "median_yen", "least_yen", "most_yen", "stddev_yen")
    yen = {name: getattr(row, name) for name in names}
    return {
        "inflow": row.inflow,
        "outflow": row.outflow,
        "liquidity": rules.liquidity(row.inflow, row.outflow),
        "samples": row.samples,
        **{name: value if value is None else round(value) for name, value in yen.items()},
    }


class HourOut(FlowOut):
    """An hour in which there was a crawl."""

    hour_at: datetime

    @classmethod
    def of(cls, row: Any) -> "HourOut":
        """Show an hour."""
        return cls(hour_at=row.hour_at, **_flow(row))


class HoursOut(BaseModel):
    """A page of hours, oldest first; an hour without a crawl is not among them."""

    ip_id: int
    from_at: datetime
    to_at: datetime
    hours: list[HourOut]
    next: str | None = Field(description="Give this as `from` for the next page.")


class PeriodOut(FlowOut):
    """A day, week or month that is over."""

    start_at: datetime
    hours_observed: int

    @classmethod
    def of(cls, row: Any) -> "PeriodOut":
        """Show a period."""
        return cls(start_at=row.start_at, hours_observed=row.hours, **_flow(row))


class PeriodsOut(BaseModel):
    """A page of days, weeks or months, newest first; they begin at midnight in `zone`."""

    ip_id: int
    zone: str
    periods: list[PeriodOut]
    next: str | None = Field(description="Give this as `before` for the next page.")


class ItemOut(BaseModel):
    """An item as it was seen last."""

    source_id: str
    title: str
    status: Status
    price_yen: int | None
    image_url: str
    item_url: str
    first_seen_at: datetime
    last_seen_at: datetime
    sold_at: datetime | None

    @classmethod
    def of(cls, row: Any) -> "ItemOut":
        """Show an item."""
        return cls.model_validate(row, from_attributes=True)


class ItemsOut(BaseModel):
    """A page of items, newest first."""

    items: list[ItemOut]
    next: str | None = Field(description="Give this as `below` for the next page.")


class ChangeOut(BaseModel):
    """Something that happened to an item."""

    kind: Kind
    at: datetime
    price_before_yen: int | None
    price_yen: int | None


class ItemLifeOut(BaseModel):
    """An item and its life story, oldest first."""

    item: ItemOut
    changes: list[ChangeOut]
    is_cut: bool = Field(description="More happened than is shown.")


class CrawlOut(BaseModel):
    """A crawl that was applied."""

    task_id: str
    crawled_at: datetime
    items: int
    inflow: int
    outflow: int
    error: str
    coverage: CoverageOut

    @classmethod
    def of(cls, row: Any) -> "CrawlOut":
        """Show a crawl."""
        plain = set(cls.model_fields) - {"coverage"}
        seen = CoverageOut.of(make_coverage(row))
        return cls(**{field: getattr(row, field) for field in plain}, coverage=seen)


class CrawlsOut(BaseModel):
    """The last crawls of an IP, newest first."""

    crawls: list[CrawlOut]


class BadRowOut(BaseModel):
    """A row of a file that was left out."""

    line: int
    message: str


class ImportedOut(BaseModel):
    """What became of a file."""

    added: int
    updated: int
    bad: list[BadRowOut]


def columns_of(form: type[BaseModel], *without: str) -> Sequence[str]:
    """List the columns of a form as a file has them, its coverage laid open."""
    laid = {"coverage": ("pages_asked", "pages_read", "capped_on_sale", "capped_sold", "is_whole")}
    wanted = [name for name in form.model_fields if name not in without]
    return [column for name in wanted for column in laid.get(name, (name,))]
