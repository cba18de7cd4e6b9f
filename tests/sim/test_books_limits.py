"""What the simulated catalogue refuses, when and in which words."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from mimawari.errors import BadInput
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.sites.google_books.site import ORIGIN_AT, Books
from tests.sim.asking import KEY, ask, call, captured

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(ORIGIN_AT + timedelta(days=2))


@pytest.fixture
def api(clock: VirtualClock) -> Books:
    return Books(clock, 7, spells=False)


@pytest.mark.parametrize(
    ("asked", "parameter", "reason"),
    [
        ({"q": "a", "maxResults": "41"}, "maxResults", "invalidParameter"),
        ({"q": "a", "maxResults": "-1"}, "maxResults", "invalidParameter"),
        ({"q": "a", "maxResults": "ten"}, "maxResults", "invalidParameter"),
        ({"q": "a", "maxResults": "\uff11"}, "maxResults", "invalidParameter"),
        ({"q": "a", "maxResults": "9" * 5000}, "maxResults", "invalidParameter"),
        ({"q": "a", "startIndex": "-1"}, "startIndex", "invalidParameter"),
        ({"q": "a", "startIndex": "1.5"}, "startIndex", "invalidParameter"),
        ({"q": "a", "startIndex": str(2**31)}, "startIndex", "invalidParameter"),
        ({"q": "a", "orderBy": "oldest"}, "orderBy", "invalidParameter"),
        ({"q": "a", "printType": "maps"}, "printType", "invalidParameter"),
        ({"q": ""}, "q", "queryRequired"),
        ({"q": " \u3000 "}, "q", "queryRequired"),
        ({}, "q", "queryRequired"),
    ],
)
async def test_a_bad_parameter_is_refused_in_the_real_shape(
    api: Books, asked: dict[str, str], parameter: str, reason: str
) -> None:
    status, body = await call(api, **asked)
    assert status == body["error"]["code"] == 400
    assert body["error"]["message"]
    assert body["error"]["errors"] == [
        {
            "message": body["error"]["message"],
            "domain": "global",
            "reason": reason,
            "location": parameter,
            "locationType": "parameter",
        }
    ]
    if asked.get("q") == "a":
        with pytest.raises(BadInput):
            api.truth(asked)


async def test_calls_without_a_key_have_no_quota_at_all(api: Books) -> None:
    for headers in ({}, {"x-goog-api-key": ""}):
        status, body = await call(api, headers, q="猫")
        assert status == body["error"]["code"] == 429
        assert "Queries per day" in body["error"]["message"]
        assert body["error"]["status"] == "RESOURCE_EXHAUSTED"
    assert api.truth({})["used_today"] == {}


async def test_a_key_has_a_thousand_calls_a_day_wherever_it_stands_and_bad_calls_count(
    api: Books, clock: VirtualClock
) -> None:
    for number in range(1000):
        clock.step(SECOND / 4)
        given = {"key": "one"} if number % 2 else {}
        status, _ = await call(api, {} if given else {"x-goog-api-key": "one"}, **given)
        assert status == 400
    status, body = await call(api, {}, q="zzzz", key="one")
    assert status == 429
    assert "Queries per day" in body["error"]["message"]
    assert (await call(api, {}, q="zzzz", key="two"))[0] == 200
    assert api.truth({})["used_today"] == {"one": 1000, "two": 1}


async def test_the_quota_can_be_changed(api: Books) -> None:
    api.quota_a_day = 2
    assert [(await call(api, q="猫"))[0] for _ in range(4)] == [200, 200, 429, 429]
    api.quota_a_day = 3
    assert [(await call(api, q="猫"))[0] for _ in range(2)] == [200, 429]
    assert api.truth({})["quota_a_day"] == 3


@pytest.mark.parametrize(
    "midnight",
    [
        *(datetime(2025, 7, 5, 7, tzinfo=UTC), datetime(2025, 11, 3, 8, tzinfo=UTC)),
        *(datetime(2026, 1, 5, 8, tzinfo=UTC), datetime(2026, 3, 9, 7, tzinfo=UTC)),
    ],
)
async def test_the_quota_is_new_at_midnight_in_california(midnight: datetime) -> None:
    clock = VirtualClock(midnight - 2 * SECOND)
    api = Books(clock, 7, spells=False)
    api.quota_a_day = 1
    assert (await call(api, q="猫"))[0] == 200
    clock.step(SECOND)
    assert (await call(api, q="猫"))[0] == 429
    clock.step(SECOND)
    assert api.truth({})["used_today"] == {}
    assert (await call(api, q="猫"))[0] == 200


async def test_more_than_ten_calls_in_a_second_are_a_burst_and_not_the_days_quota(
    api: Books, clock: VirtualClock
) -> None:
    assert [(await call(api, q="猫"))[0] for _ in range(10)] == [200] * 10
    clock.step(SECOND * 0.999)
    status, body = await call(api, q="猫")
    assert status == body["error"]["code"] == 429
    assert "per day" not in body["error"]["message"]
    assert (await call(api, {}, q="猫", key="other"))[0] == 200
    clock.step(SECOND * 0.001)
    assert (await call(api, q="猫"))[0] == 200
    assert api.truth({})["used_today"] == {"a-key": 11, "other": 1}


def spells_of(api: Books, clock: VirtualClock) -> Iterator[float]:
    for _ in range(24 * 12 * 3):
        clock.step(HOUR / 12)
        yield api.truth({})["failing_share"]


async def test_there_are_spells_in_which_a_good_part_of_all_calls_fails(
    clock: VirtualClock,
) -> None:
    api = Books(clock, 7)
    api.quota_a_day = 10**6
    shares = list(spells_of(api, clock))
    bad = {share for share in shares if share}
    assert len(bad) > 5
    assert all(0.3 <= share <= 0.8 for share in bad)
    assert 0.02 < sum(map(bool, shares)) / len(shares) < 0.3
    while not api.truth({})["failing_share"]:
        clock.step(HOUR / 12)
    share = api.truth({})["failing_share"]
    failed = 0
    for _ in range(300):
        clock.step(SECOND / 10)
        status, body = await call(api, q="猫")
        failed += status == 503
        assert status == 200 or body["error"]["errors"][0]["reason"] == "backendFailed"
    assert abs(failed / 300 - share) < 0.2
    api.spells = False
    clock.step(SECOND)
    assert [(await call(api, q="猫"))[0] for _ in range(10)] == [200] * 10


def test_without_spells_none_is_told_of(api: Books, clock: VirtualClock) -> None:
    assert set(spells_of(api, clock)) == {0.0}


def test_a_refusal_is_a_page_that_is_sorry(api: Books) -> None:
    response = api.refusal()
    assert response.status_code == 403
    assert response.media_type == "text/html"
    assert "Sorry" in bytes(response.body).decode()


@pytest.mark.parametrize("path", ["/books/", "/books/v1/volume", "/_books/content?id=none"])
async def test_what_there_is_not_is_404_in_the_real_shape(api: Books, path: str) -> None:
    response = await ask(api, path, headers=KEY)
    assert response.status_code == 404
    assert json.loads(bytes(response.body))["error"]["code"] == 404
    assert (await ask(api, "/books/v1/volumes?q=a", method="POST")).status_code == 404


async def test_errors_and_empty_lists_are_those_that_were_captured(clock: VirtualClock) -> None:
    api = Books(clock, 7)
    while api.truth({})["failing_share"] < 0.5:
        clock.step(HOUR / 12)
    answers = [await call(api, q="猫") for _ in range(10)]
    assert (503, captured("error_503_backendFailed.json")) in answers
    _, body = await call(api, {}, q="猫")
    real = captured("error_429_daily_quota.json")
    consumer = r"project_number:\d+"
    plain = [re.sub(consumer, "", error["error"]["message"]) for error in (body, real)]
    assert plain[0] == plain[1]
    assert real["error"].keys() <= body["error"].keys()
    assert await call(Books(clock, 7, spells=False), q="zzzz") == (
        200,
        captured("empty_no_items_key.json"),
    )
