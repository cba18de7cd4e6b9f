"""The messages in the queue: the official protobuf library reads ours, and we read its."""

import json
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from google.protobuf import json_format
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.watches.hot import messages
from mimawari.watches.hot.models import Coverage, Crawl, Request, Seen, Status
from mimawari.wire import crawler_pb2
from mimawari.wire.crawling import RESPONSE
from tests.hot import foreign

ROOT = Path(__file__).parents[2]
AT = datetime(2024, 1, 22, 2, 20, tzinfo=UTC)
# The very messages that the specification shows.
TASK = {
    "ipId": "11",
    "keyword": "鬼滅の刃",
    "taskId": "550e8400-e29b-41d4-a716-446655440000",
    "createdAt": "1705890000",
    "pagesOnSale": 5,
    "pagesSold": 5,
}
RESULT = {
    "ipId": "11",
    "items": [
        {
            "sourceId": "m1234567890",
            "title": "鬼滅の刃 フィギュア",
            "price": 5000,
            "imageUrl": "https://image",
            "itemUrl": "https://item",
            "status": "ITEM_STATUS_ON_SALE",
        }
    ],
    "totalFound": 50,
    "taskId": "550e8400-e29b-41d4-a716-446655440000",
    "crawledAt": "1705890150",
    "pagesCrawled": 10,
}


def request() -> Request:
    return Request(
        ip_id=11,
        keyword="鬼滅の刃",
        task_id="550e8400-e29b-41d4-a716-446655440000",
        created_at=AT,
        retry_count=0,
        pages_on_sale=5,
        pages_sold=5,
    )


def test_a_request_stands_in_the_queue_as_the_specification_shows_it() -> None:
    assert messages.write_request(request()) == TASK
    assert messages.parse_request(TASK, "other", AT) == request()


def test_a_result_is_read_as_the_specification_shows_it() -> None:
    crawl = messages.parse_crawl(RESULT)
    assert (crawl.ip_id, crawl.task_id) == (11, RESULT["taskId"])
    assert crawl.crawled_at == datetime(2024, 1, 22, 2, 22, 30, tzinfo=UTC)
    assert crawl.coverage == Coverage(pages_asked=10, pages_read=10)
    assert crawl.items == (
        Seen(
            source_id="m1234567890",
            title="鬼滅の刃 フィギュア",
            price_yen=5000,
            status=Status.AVAILABLE,
            image_url="https://image",
            item_url="https://item",
        ),
    )


texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=20)
seen_items = st.builds(
    Seen,
    source_id=st.text("m0123456789", min_size=1, max_size=12),
    title=texts,
    price_yen=st.one_of(st.none(), st.integers(1, 9_999_998)),
    status=st.sampled_from(Status),
    image_url=texts,
    item_url=texts,
)
coverages = st.builds(
    Coverage,
    pages_asked=st.integers(1, 200),
    pages_read=st.integers(0, 200),
    capped_on_sale=st.booleans(),
    capped_sold=st.booleans(),
    page_errors=st.lists(texts, max_size=3).map(tuple),
)
crawls = st.builds(
    Crawl,
    ip_id=st.integers(1, 2**63),
    task_id=st.text("0123456789abcdef-", min_size=1, max_size=36),
    crawled_at=st.datetimes(datetime(1970, 1, 2), datetime(2200, 1, 1)).map(  # noqa: DTZ001
        lambda at: at.replace(microsecond=0, tzinfo=UTC)
    ),
    items=st.lists(seen_items, max_size=5).map(tuple),
    coverage=coverages,
    error=texts,
    retry_count=st.integers(0, 3),
)


@pytest.fixture(scope="module")
def response_class(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return foreign.compile_messages(tmp_path_factory.mktemp("spec"))["CrawlResponse"]


@given(crawls)
def test_what_we_write_the_official_library_reads_and_writes_alike(
    response_class: Any, crawl: Crawl
) -> None:
    args = json.loads(json.dumps(messages.write_crawl(crawl)))
    ours = RESPONSE.plain(args)
    theirs = json_format.Parse(json.dumps(ours), response_class())
    assert json.loads(json_format.MessageToJson(theirs)) == ours
    assert {**ours, messages.COVERAGE: args[messages.COVERAGE]} == args
    assert theirs.ip_id == crawl.ip_id
    assert [item.source_id for item in theirs.items] == [item.source_id for item in crawl.items]
    back = response_class.FromString(theirs.SerializeToString())
    beside = {messages.COVERAGE: args[messages.COVERAGE]}
    assert messages.parse_crawl({**json_format.MessageToDict(back), **beside}) == crawl


@given(crawls)
def test_names_as_in_the_definition_and_numbers_of_enums_are_read_too(
    response_class: Any, crawl: Crawl
) -> None:
    args = messages.write_crawl(crawl)
    theirs = json_format.ParseDict(RESPONSE.plain(args), response_class())
    spelt = json_format.MessageToDict(
        theirs,
        preserving_proto_field_name=True,
        use_integers_for_enums=True,
        always_print_fields_with_no_presence=True,
    )
    beside = {messages.COVERAGE: args[messages.COVERAGE]}
    assert messages.parse_crawl({**spelt, **beside}) == crawl
    assert RESPONSE.parse(json.dumps(spelt).encode()) == RESPONSE.plain(args)


@given(crawls)
def test_a_result_that_was_put_before_coverage_stood_apart_is_read_as_it_was(crawl: Crawl) -> None:
    args = messages.write_crawl(crawl)
    beside = args.pop(messages.COVERAGE)
    assert messages.parse_crawl({**args, **beside}) == crawl


def test_the_generated_code_is_that_of_the_definition(tmp_path: Path) -> None:
    out = [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    assert protoc.main(["", f"-I{ROOT / 'proto'}", *out, "crawler.proto"]) == 0
    code: ModuleType = crawler_pb2
    assert code.__file__ is not None
    kept = Path(code.__file__)
    for suffix in (".py", ".pyi"):
        made = (tmp_path / "crawler_pb2.py").with_suffix(suffix)
        assert made.read_text() == kept.with_suffix(suffix).read_text()


def test_what_a_newer_program_says_beside_is_passed_over() -> None:
    assert messages.parse_request({**TASK, "mood": "sunny"}, "other", AT) == request()


def test_a_request_without_an_id_or_a_time_has_those_of_its_job() -> None:
    short = {name: TASK[name] for name in ("ipId", "keyword", "pagesOnSale", "pagesSold")}
    found = messages.parse_request(short, "job", AT)
    assert (found.task_id, found.created_at) == ("job", AT)


@pytest.mark.parametrize("price", [0, 9_999_999, -5])
def test_a_price_that_is_none_is_none(price: int) -> None:
    items = [{"sourceId": "m1", "status": "ITEM_STATUS_SOLD", "price": price}]
    (item,) = messages.parse_crawl({**RESULT, "items": items}).items
    assert item.price_yen is None


@pytest.mark.parametrize(
    "change",
    [
        {"ipId": 0},
        {"ipId": -1},
        {"ipId": "eleven"},
        {"ipId": 2**70},
        {"ipId": 1.5},
        {"ipId": []},
        {"keyword": ""},
        {"keyword": "  "},
        {"keyword": 5},
        {"pagesOnSale": 101},
        {"pagesSold": -1},
        {"pagesSold": "many"},
        {"createdAt": "99999999999999"},
        {"createdAt": {}},
    ],
    ids=str,
)
def test_a_request_that_makes_no_sense_is_refused_with_a_sentence(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"CrawlRequest|Unix seconds"):
        messages.parse_request({**TASK, **change}, "job", AT)


@pytest.mark.parametrize(
    "change",
    [
        {"ipId": "0"},
        {"taskId": ""},
        {"crawledAt": "0"},
        {"crawledAt": "-99999999999999"},
        {"items": {}},
        {"items": [5]},
        {"items": [{"sourceId": "", "status": 1}]},
        {"items": [{"sourceId": "m" * 65, "status": 1}]},
        {"items": [{"sourceId": "m1", "price": 2**40, "status": 1}]},
        {"pageErrors": "all"},
        {"pagesAsked": "many"},
        {"coverage": []},
        {"coverage": {"pagesAsked": -1}},
        {"coverage": {"pageErrors": [5]}},
    ],
    ids=str,
)
def test_a_result_that_makes_no_sense_is_refused_with_a_sentence(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"CrawlResponse|Unix seconds|no id"):
        messages.parse_crawl({**RESULT, **change})


def test_items_of_no_known_status_are_left_out() -> None:
    lost = {"sourceId": "m3", "status": "ITEM_STATUS_LOST"}
    items = [{"sourceId": "m1"}, {"sourceId": "m2", "status": 2}, lost]
    assert [one.source_id for one in messages.parse_crawl({**RESULT, "items": items}).items] == [
        "m2"
    ]
