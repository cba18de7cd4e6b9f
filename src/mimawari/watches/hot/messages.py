"""The messages in the queue: protobuf by their definition, proto3 JSON by their form.

A job's arguments are its message and, beside it, what its definition has no field for.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from mimawari.errors import BadInput
from mimawari.text import clean, one_line
from mimawari.watches.hot.models import Coverage, Crawl, Request, Seen, Status
from mimawari.wire.crawler_pb2 import (
    ITEM_STATUS_ON_SALE,
    ITEM_STATUS_SOLD,
    CrawlRequest,
    CrawlResponse,
    Item,
)

NO_PRICE_YEN = 9_999_999
"""What the site shows where the seller has set no price."""
MOST_PAGES = 100
MOST_ID = 64
MOST_ITEMS = 2 * MOST_PAGES * 120

COVERAGE = "coverage"
"""The argument that says beside a CrawlResponse how much of the market the crawl could see."""

M = TypeVar("M", bound=Message)

_STATUSES = {ITEM_STATUS_ON_SALE: Status.AVAILABLE, ITEM_STATUS_SOLD: Status.SOLD}


def _parse(args: Mapping[str, Any], message: M) -> M:
    try:
        # A newer program may say more than this one understands.
        return ParseDict(dict(args), message, ignore_unknown_fields=True)
    except (ParseError, RecursionError) as error:
        name = message.DESCRIPTOR.name
        raise BadInput(f"no {name} that we can read: {one_line(str(error))}") from error


def _time(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError) as error:
        raise BadInput(f"{seconds} is no time in Unix seconds") from error


def write_request(request: Request) -> dict[str, Any]:
    """Write a request as it stands in the queue."""
    return MessageToDict(
        CrawlRequest(
            ip_id=request.ip_id,
            keyword=request.keyword,
            task_id=request.task_id,
            created_at=int(request.created_at.timestamp()) if request.created_at else 0,
            retry_count=request.retry_count,
            pages_on_sale=request.pages_on_sale,
            pages_sold=request.pages_sold,
        )
    )


def parse_request(args: Mapping[str, Any], job_id: str, enqueued_at: datetime) -> Request:
    """Read a request; what its job knows better need not stand in it."""
    found = _parse(args, CrawlRequest())
    keyword = clean(found.keyword).strip()
    if not found.ip_id or not keyword:
        raise BadInput("a CrawlRequest needs an ipId and a keyword")
    if not (0 <= found.pages_on_sale <= MOST_PAGES and 0 <= found.pages_sold <= MOST_PAGES):
        raise BadInput(f"a CrawlRequest asks for 0 to {MOST_PAGES} pages of each side")
    return Request(
        ip_id=found.ip_id,
        keyword=keyword,
        task_id=found.task_id or job_id,
        created_at=_time(found.created_at) if found.created_at else enqueued_at,
        retry_count=found.retry_count,
        pages_on_sale=found.pages_on_sale,
        pages_sold=found.pages_sold,
    )


def write_crawl(crawl: Crawl) -> dict[str, Any]:
    """Write what a crawl found as a job's arguments: the message, and its coverage beside it."""
    coverage = crawl.coverage
    message = MessageToDict(
        CrawlResponse(
            ip_id=crawl.ip_id,
            items=[_item(seen) for seen in crawl.items],
            total_found=len(crawl.items),
            error_message=crawl.error,
            task_id=crawl.task_id,
            crawled_at=int(crawl.crawled_at.timestamp()),
            pages_crawled=coverage.pages_read,
            retry_count=crawl.retry_count,
        )
    )
    beside = {
        "pagesAsked": coverage.pages_asked,
        "cappedOnSale": coverage.capped_on_sale,
        "cappedSold": coverage.capped_sold,
        "pageErrors": list(coverage.page_errors),
    }
    return {**message, COVERAGE: beside}


def _item(seen: Seen) -> Item:
    is_sold = seen.status is Status.SOLD
    return Item(
        source_id=seen.source_id,
        title=seen.title,
        price=seen.price_yen or 0,
        image_url=seen.image_url,
        item_url=seen.item_url,
        status=ITEM_STATUS_SOLD if is_sold else ITEM_STATUS_ON_SALE,
    )


def parse_crawl(args: Mapping[str, Any]) -> Crawl:
    """Read what a crawl found, also one that another program made."""
    found = _parse(args, CrawlResponse())
    if not (found.ip_id and found.task_id and found.crawled_at):
        raise BadInput("a CrawlResponse needs an ipId, a taskId and a crawledAt")
    if len(found.items) > MOST_ITEMS:
        raise BadInput(f"a CrawlResponse holds at most {MOST_ITEMS} items")
    return Crawl(
        ip_id=found.ip_id,
        task_id=clean(found.task_id),
        crawled_at=_time(found.crawled_at),
        items=tuple(_seen(item) for item in found.items if item.status in _STATUSES),
        coverage=_coverage(args, found.pages_crawled),
        error=found.error_message,
        retry_count=found.retry_count,
    )


def _coverage(args: Mapping[str, Any], pages_read: int) -> Coverage:
    """Read what stands beside a message; another program's has nothing there."""
    # Results that were put before coverage stood apart have it among the message's own fields.
    beside = args.get(COVERAGE, args)
    if not isinstance(beside, Mapping):
        raise BadInput("the coverage beside a CrawlResponse is an object")
    pages_asked, errors = beside.get("pagesAsked", 0), beside.get("pageErrors", [])
    if not isinstance(pages_asked, int) or not 0 <= pages_asked < 2**31:
        raise BadInput("the coverage beside a CrawlResponse needs pagesAsked as a number")
    if not isinstance(errors, list) or not all(isinstance(error, str) for error in errors):
        raise BadInput("the coverage beside a CrawlResponse needs pageErrors as a list of texts")
    return Coverage(
        pages_asked=pages_asked or pages_read,
        pages_read=pages_read,
        capped_on_sale=beside.get("cappedOnSale") is True,
        capped_sold=beside.get("cappedSold") is True,
        page_errors=tuple(map(clean, errors)),
    )


def _seen(item: Item) -> Seen:
    if not 0 < len(item.source_id) <= MOST_ID:
        raise BadInput(f"{one_line(item.source_id, most=80)!r} is no id of an item")
    return Seen(
        source_id=clean(item.source_id),
        title=clean(item.title),
        price_yen=item.price if 0 < item.price < NO_PRICE_YEN else None,
        status=_STATUSES[item.status],
        image_url=clean(item.image_url),
        item_url=clean(item.item_url),
    )
