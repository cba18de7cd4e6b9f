"""IPs over the API: adding, changing, removing, listing, and crawling at once."""

from typing import Any

import pytest

from mimawari.kernel.job import State, Want
from mimawari.watches.hot.models import NewIp
from tests.app.ground import check_error
from tests.hot.api_ground import CAPPED, HOUR, Hot, seen

FRIEREN = {
    "name": " 葬送のフリーレン ",
    "keyword": "フリーレン",
    "name_en": "Frieren",
    "weight": 2,
    "active": True,
    "tags": ["anime", "2023", "anime"],
}


async def test_an_ip_that_is_added_is_shown_whole_with_its_next_crawl(hot: Hot) -> None:
    response = await hot.http.post("/api/v1/ips", json=FRIEREN)
    assert response.status_code == 201, response.text
    added = response.json()
    assert added == await hot.get(f"/ips/{added['id']}")
    assert added == {
        "id": 1,
        "name": "葬送のフリーレン",
        "keyword": "フリーレン",
        "name_en": "Frieren",
        "weight": 2.0,
        "active": True,
        "tags": ["anime", "2023"],
        "interval_seconds": 3600.0,
        "last_crawled_at": None,
        "baseline_at": None,
        "failures": 0,
        "last_error": "",
        "coverage": {
            "pages_asked": 0,
            "pages_read": 0,
            "capped_on_sale": False,
            "capped_sold": False,
            "is_whole": False,
            "page_errors": [],
        },
        "note": "nothing is counted before the first crawl that reads every page",
        "created_at": "2026-01-05T12:00:00Z",
        "updated_at": "2026-01-05T12:00:00Z",
        "next_at": "2026-01-05T12:00:00Z",
        "reason": "first run",
    }


async def test_a_keyword_that_is_not_said_is_the_name(hot: Hot) -> None:
    added = (await hot.http.post("/api/v1/ips", json={"name": "呪術廻戦"})).json()
    assert (added["keyword"], added["weight"], added["tags"]) == ("呪術廻戦", 1.0, [])


async def test_what_a_crawl_could_not_see_is_shown(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    await hot.crawl(ip_id, [seen("m1")])
    await hot.crawl(ip_id, [seen("m1")], coverage=CAPPED)
    shown = await hot.get(f"/ips/{ip_id}")
    assert shown["baseline_at"] == "2026-01-05T12:00:00Z"
    assert shown["coverage"]["capped_on_sale"] is True
    assert "may be higher" in shown["note"]
    assert "1 of 10 pages" in shown["note"]
    await hot.crawl(ip_id, error="none of 10 pages could be read")
    failing = await hot.get(f"/ips/{ip_id}")
    assert (failing["failures"], failing["last_error"]) == (1, "none of 10 pages could be read")


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
async def test_ips_come_by_id_a_page_at_a_time_each_once(hot: Hot, limit: int) -> None:
    ids = await hot.named(*"abcdefg")
    found: list[int] = []
    after = 0
    while True:
        page = await hot.get("/ips", limit=limit, after=after)
        assert 0 < len(page["ips"]) <= limit
        found += [ip["id"] for ip in page["ips"]]
        if page["next"] is None:
            break
        after = page["next"]
    assert found == ids


async def test_ips_are_found_by_what_they_are_called(hot: Hot) -> None:
    await hot.add(
        NewIp(name="鬼滅の刃", keyword="鬼滅", name_en="Demon Slayer", tags=("shonen",)),
        NewIp(name="100%", keyword="x", active=False),
    )

    async def names(**params: Any) -> list[str]:
        return [ip["name"] for ip in (await hot.get("/ips", **params))["ips"]]

    assert await names(search="demon") == ["鬼滅の刃"]
    assert await names(search="shonen") == ["鬼滅の刃"]
    assert await names(search="滅の") == ["鬼滅の刃"]
    assert await names(search="%") == ["100%"]
    assert await names(active="true") == ["鬼滅の刃"]
    assert await names(active="false") == ["100%"]
    assert await names(search="nobody") == []


async def test_a_keyword_that_is_taken_is_refused_with_who_has_it(hot: Hot) -> None:
    first, second = await hot.add(
        NewIp(name="鬼滅の刃", keyword="鬼滅"), NewIp(name="b", keyword="b")
    )
    body = {"name": "another", "keyword": "鬼滅"}
    answers = [
        await hot.http.post("/api/v1/ips", json=body),
        await hot.http.put(f"/api/v1/ips/{second.id}", json=body),
        await hot.http.patch(f"/api/v1/ips/{second.id}", json={"keyword": "鬼滅"}),
    ]
    for answer in answers:
        message = check_error(answer, 409, "conflict")
        assert f"IP {first.id} (鬼滅の刃)" in message
        assert "take another keyword" in message
    assert (await hot.get(f"/ips/{second.id}"))["keyword"] == "b"


async def test_a_put_says_everything_anew_and_a_patch_only_what_it_names(hot: Hot) -> None:
    added = (await hot.http.post("/api/v1/ips", json=FRIEREN)).json()
    path = f"/api/v1/ips/{added['id']}"
    await hot.clock.advance(HOUR)
    patched = (await hot.http.patch(path, json={"weight": 0.5, "tags": ["x", "x"]})).json()
    changed = {"weight": 0.5, "tags": ["x"], "updated_at": "2026-01-05T13:00:00Z"}
    assert {**added, **changed}.items() >= {
        key: value
        for key, value in patched.items()
        if key not in {"interval_seconds", "next_at", "reason"}
    }.items()
    assert patched["interval_seconds"] == 7200.0
    same = (await hot.http.patch(path, json={})).json()
    assert same == patched
    put = (await hot.http.put(path, json={"name": "F", "keyword": "フリーレン"})).json()
    assert (put["name_en"], put["weight"], put["tags"], put["active"]) == ("", 1.0, [], True)


async def test_an_ip_that_is_not_active_is_not_crawled(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    off = (await hot.http.patch(f"/api/v1/ips/{ip_id}", json={"active": False})).json()
    assert off["next_at"] is None
    assert "not active" in off["reason"]
    on = (await hot.http.patch(f"/api/v1/ips/{ip_id}", json={"active": True})).json()
    assert on["next_at"] == "2026-01-05T12:00:00Z"


async def test_an_ip_that_is_removed_is_gone_with_all_it_had(hot: Hot) -> None:
    ip_id = await hot.flow("a", inflow=2, outflow=1)
    await hot.clock.advance(HOUR)
    assert len((await hot.get("/leaderboard"))["entries"]) == 1
    response = await hot.http.delete(f"/api/v1/ips/{ip_id}")
    assert (response.status_code, response.content) == (204, b"")
    assert (await hot.get("/leaderboard"))["entries"] == []
    assert (await hot.get("/system/status"))["items"] == 0
    check_error(await hot.http.delete(f"/api/v1/ips/{ip_id}"), 404, "not_found")
    assert await hot.api.store.schedule.find(f"hot:{ip_id}") is None


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PUT", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/trigger"),
        ("GET", "/liquidity"),
        ("GET", "/stats/hourly"),
        ("GET", "/stats/daily"),
        ("GET", "/items"),
        ("GET", "/items/m1"),
        ("GET", "/crawls"),
    ],
)
async def test_an_ip_that_nobody_watches_is_not_found(calm: Hot, method: str, path: str) -> None:
    body = {"name": "a"} if method in {"PUT", "PATCH"} else None
    response = await calm.http.request(method, f"/api/v1/ips/77{path}", json=body)
    assert "77" in check_error(response, 404, "not_found")


@pytest.mark.parametrize("ip_id", ["0", "-1", "x", "1.0", "+1", "\uff11", "2147483648", "9" * 50])
async def test_an_id_that_is_none_is_not_allowed(calm: Hot, ip_id: str) -> None:
    check_error(await calm.http.get(f"/api/v1/ips/{ip_id}"), 422, "bad_input")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": ""},
        {"name": " \u3000"},
        {"name": "x" * 201},
        {"name": "a\nb"},
        {"name": "a\x9fb"},
        {"name": 5},
        {"name": None},
        {"name": "a", "keyword": "x\ty"},
        {"name": "a", "keyword": "x" * 201},
        {"name": "a", "weight": 0.05},
        {"name": "a", "weight": 4.01},
        {"name": "a", "weight": "1"},
        {"name": "a", "weight": True},
        {"name": "a", "active": "yes"},
        {"name": "a", "tags": "x"},
        {"name": "a", "tags": [""]},
        {"name": "a", "tags": ["x" * 51]},
        {"name": "a", "tags": ["x"] * 21},
        {"name": "a", "wieght": 2},
        [],
    ],
)
async def test_an_ip_that_makes_no_sense_is_not_allowed(calm: Hot, body: Any) -> None:
    check_error(await calm.http.post("/api/v1/ips", json=body), 422, "bad_input")
    assert (await calm.get("/ips"))["ips"] == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "a", "weight": NaN}',
        b'{"name": "a", "weight": 1e999}',
        b'{"name": "a", "weight": 99999999999999999999}',
        rb'{"name": "\ud800"}',
        rb'{"name": "a\u0000"}',
        b'{"name": "\xff"}',
        b'{"name": ' + b"[" * 5000,
        b'{"name": "a", "name": "b"}',
    ],
)
async def test_json_that_breaks_its_readers_ends_at_the_edge(calm: Hot, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    response = await calm.http.post("/api/v1/ips", content=body, headers=headers)
    check_error(response, 400, "bad_json")


@pytest.mark.parametrize("name", ["name", "keyword", "weight", "active", "tags"])
async def test_a_patch_never_makes_something_nothing(hot: Hot, name: str) -> None:
    (ip_id,) = await hot.named("a")
    response = await hot.http.patch(f"/api/v1/ips/{ip_id}", json={name: None})
    check_error(response, 422, "bad_input")


@pytest.mark.parametrize(
    "params",
    [
        {"limit": "501"},
        {"limit": "0"},
        {"limit": "1_0"},
        {"after": "-1"},
        {"active": "maybe"},
        {"search": "x" * 101},
        {"search": "a\x00"},
        {"format": "xml"},
        {"limti": "5"},
    ],
)
async def test_a_list_that_makes_no_sense_is_not_allowed(calm: Hot, params: Any) -> None:
    check_error(await calm.http.get("/api/v1/ips", params=params), 422, "bad_input")


async def test_a_crawl_that_is_asked_for_twice_is_made_once(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    answers = [await hot.http.post(f"/api/v1/ips/{ip_id}/trigger") for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    first, second = (answer.json() for answer in answers)
    assert (first["is_new"], second["is_new"]) == (True, False)
    assert first["job_id"] == second["job_id"]
    assert first["state"] == second["state"] == "pending"
    assert first["reason"] == second["reason"] == "waits for a free worker"
    job = await hot.api.store.queue.find(first["job_id"])
    assert job is not None
    assert (job.kind, job.reason, job.priority) == ("hot.crawl", "asked for", 10)


async def test_a_crawl_under_way_is_named_and_one_that_is_over_makes_room(hot: Hot) -> None:
    (ip_id,) = await hot.named("a")
    path = f"/api/v1/ips/{ip_id}/trigger"
    first = (await hot.http.post(path)).json()
    want = Want(kind="hot.crawl", most=1, lease_for=HOUR)
    (job,) = (await hot.api.store.queue.turn((), [want], "w")).jobs
    during = (await hot.http.post(path)).json()
    assert (during["job_id"], during["state"]) == (first["job_id"], State.PROCESSING)
    assert "w is at work on it" in during["reason"]
    async with hot.api.store.commit(job):
        pass
    after = (await hot.http.post(path)).json()
    assert after["is_new"]
    assert after["job_id"] != first["job_id"]
