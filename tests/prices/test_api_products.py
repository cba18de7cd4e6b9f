"""Products over the API: adding, changing, removing, listing, and their settings alone."""

from typing import Any

import pytest

from mimawari.kernel.job import State
from tests.app.ground import check_error
from tests.prices.api_ground import BUSY, QUIET, Shop
from tests.prices.crawling import CAPPED, HOUR, apply, found

SWITCH: dict[str, Any] = {
    "name": " Switch 有機EL ",
    "setting": {
        "keyword": " Nintendo Switch ",
        "category_id": 1328,
        "min_price": 1000,
        "max_price": 50_000,
        "enabled": True,
        "exclusions": ["ジャンク", "まとめ売り", "ジャンク"],
        "item_conditions": [2, 1, 2],
        "target_price": 25_000,
        "median_percent": 20,
    },
}
KEPT = {
    **SWITCH["setting"],
    "keyword": "Nintendo Switch",
    "exclusions": ["ジャンク", "まとめ売り"],
    "item_conditions": [1, 2],
}
PLAIN: dict[str, Any] = {
    "keyword": "x",
    "category_id": None,
    "min_price": 0,
    "max_price": 0,
    "enabled": True,
    "exclusions": [],
    "item_conditions": [],
    "target_price": None,
    "median_percent": None,
}


async def test_a_product_that_is_added_is_shown_whole_and_crawled_at_once(shop: Shop) -> None:
    response = await shop.post("/products", **SWITCH)
    assert response.status_code == 201, response.text
    added = response.json()
    assert added == await shop.get(f"/products/{added['id']}")
    [job] = await shop.crawls()
    assert added == {
        "id": 1,
        "name": "Switch 有機EL",
        "setting": KEPT,
        "created_at": "2026-06-01T13:00:00Z",
        "updated_at": "2026-06-01T13:00:00Z",
        "first_run_at": None,
        "last_run_at": None,
        "crawls": [],
        "alerts": [],
        "next": {
            "next_at": "2026-06-01T13:00:00Z",
            "reason": "no worker is running; start one with `mimawari serve`",
            "blocked_by": None,
            "job_id": job.id,
        },
    }


async def test_what_is_not_said_of_a_setting_is_no_bound_and_enabled(shop: Shop) -> None:
    assert (await shop.add("x"))["setting"] == PLAIN


async def test_a_product_tells_its_last_crawls_and_when_the_next_one_comes(shop: Shop) -> None:
    product_id = (await shop.add())["id"]
    await shop.execute(json={"productId": product_id})
    shown = await shop.get(f"/products/{product_id}")
    [crawl] = shown["crawls"]
    assert (crawl["pages_asked"], crawl["pages_read"], crawl["page_errors"]) == (4, 4, [])
    assert (crawl["capped_on_sale"], crawl["capped_sold"]) == (False, False)
    assert crawl["found"] == crawl["added"] + crawl["left_out"] > 10
    assert crawl["job_id"] == (await shop.crawls())[0].id
    assert shown["first_run_at"] == shown["last_run_at"] == crawl["crawled_at"]
    assert shown["next"] == {
        "next_at": "2026-06-01T14:00:00Z",
        "reason": "cron 0 * * * *",
        "blocked_by": None,
        "job_id": None,
    }


async def test_a_crawl_that_could_not_see_all_says_so(shop: Shop) -> None:
    product = await shop.sold()
    await apply(shop.api.store, product, 5, found("b"), sight=CAPPED)
    newest, first = (await shop.get(f"/products/{product.id}"))["crawls"]
    assert (newest["capped_on_sale"], newest["capped_sold"]) == (True, True)
    assert (first["capped_on_sale"], first["found"], first["details_enqueued"]) == (False, 11, 9)


async def test_a_product_that_is_off_is_not_crawled_and_says_so(shop: Shop) -> None:
    added = await shop.add(enabled=False)
    assert await shop.crawls() == []
    assert added["next"]["next_at"] is None
    assert added["next"]["reason"] == "it is not enabled, and so not crawled by itself"


async def test_a_product_that_is_on_no_schedule_says_what_to_do(shop: Shop) -> None:
    added = await shop.add()
    await shop.end_crawls(State.DONE)
    await shop.api.store.schedule.remove("prices:cron")
    following = (await shop.get(f"/products/{added['id']}"))["next"]
    assert following["next_at"] is None
    assert "mimawari serve" in following["reason"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
async def test_products_come_by_id_a_page_at_a_time_each_once(shop: Shop, limit: int) -> None:
    ids = [(await shop.add(word))["id"] for word in "abcdefg"]
    found_ids = await shop.pages("/products", "products", "after", limit=limit)
    assert [one["id"] for one in found_ids] == ids


async def test_products_are_chosen_by_whether_they_are_enabled(shop: Shop) -> None:
    await shop.add("on")
    await shop.add("off", enabled=False)

    async def names(**params: Any) -> list[str]:
        return [one["name"] for one in (await shop.get("/products", **params))["products"]]

    assert await names() == ["on", "off"]
    assert await names(enabled="true") == ["on"]
    assert await names(enabled="false") == ["off"]


async def test_products_are_given_as_a_file(shop: Shop) -> None:
    await shop.post("/products", **SWITCH)
    await shop.add("=1+1")
    first, second = await shop.rows("/products")
    assert (first["id"], first["name"], first["keyword"]) == ("1", "Switch 有機EL", KEPT["keyword"])
    assert (first["exclusions"], first["item_conditions"]) == ("ジャンク|まとめ売り", "1|2")
    assert (first["enabled"], first["max_price"], first["last_run_at"]) == ("true", "50000", "")
    assert second["keyword"] == "'=1+1"


async def test_a_put_says_everything_anew_and_a_patch_only_what_it_names(shop: Shop) -> None:
    path = f"/products/{(await shop.post('/products', **SWITCH)).json()['id']}"
    patched = await shop.send("PATCH", path, {"setting": {"max_price": 0, "target_price": None}})
    assert patched["name"] == "Switch 有機EL"
    assert patched["setting"] == {**KEPT, "max_price": 0, "target_price": None}
    named = await shop.send("PATCH", path, {"name": "S"})
    assert (named["name"], named["setting"]) == ("S", patched["setting"])
    put = await shop.send("PUT", path, {"name": "T", "setting": {"keyword": "x"}})
    assert (put["name"], put["setting"]) == ("T", PLAIN)
    assert put == await shop.get(path)


async def test_a_setting_is_shown_and_changed_alone(shop: Shop) -> None:
    product_id = (await shop.post("/products", **SWITCH)).json()["id"]
    path = f"/products/{product_id}/setting"
    assert await shop.get(path) == KEPT
    patched = await shop.send("PATCH", path, {"category_id": None, "exclusions": []})
    assert patched == {**KEPT, "category_id": None, "exclusions": []}
    assert await shop.send("PUT", path, {"keyword": "x"}) == PLAIN
    assert await shop.get(path) == PLAIN
    assert (await shop.get(f"/products/{product_id}"))["name"] == "Switch 有機EL"


async def test_another_setting_is_crawled_at_once_and_the_same_is_not(shop: Shop) -> None:
    added = await shop.add()
    path = f"/products/{added['id']}"
    await shop.end_crawls(State.DONE)
    await shop.clock.advance(HOUR)
    same = await shop.send("PUT", path, {"name": QUIET, "setting": {"keyword": QUIET}})
    assert (same["updated_at"], len(await shop.crawls())) == (added["updated_at"], 1)
    await shop.send("PATCH", path, {"name": "another name"})
    assert len(await shop.crawls()) == 1
    for _ in range(2):
        # One that waits already is not asked for a second time.
        await shop.send("PATCH", f"{path}/setting", {"min_price": len(await shop.crawls())})
        assert len(await shop.crawls()) == 2
    shown = await shop.get(path)
    assert shown["updated_at"] == "2026-06-01T14:00:00Z"
    assert shown["next"]["job_id"] == (await shop.crawls(State.PENDING))[0].id


async def test_a_setting_that_is_switched_off_is_not_crawled_and_on_again_it_is(shop: Shop) -> None:
    path = f"/products/{(await shop.add())['id']}/setting"
    await shop.end_crawls(State.DONE)
    await shop.send("PATCH", path, {"enabled": False, "min_price": 5})
    assert len(await shop.crawls()) == 1
    await shop.send("PATCH", path, {"enabled": True})
    assert len(await shop.crawls()) == 2


async def test_a_removed_product_is_gone_with_all_that_was_found(shop: Shop) -> None:
    product = await shop.sold()
    response = await shop.http.delete(f"/api/products/{product.id}")
    assert (response.status_code, response.content) == (204, b"")
    assert (await shop.get("/products"))["products"] == []
    again = await shop.http.delete(f"/api/products/{product.id}")
    assert "GET /api/products list them" in check_error(again, 404, "not_found")


UNKNOWN = (
    "no product goes by the id 77; `mimawari prices product ls` and GET /api/products list them"
)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/products/77"),
        ("PUT", "/products/77"),
        ("PATCH", "/products/77"),
        ("DELETE", "/products/77"),
        ("GET", "/products/77/setting"),
        ("PUT", "/products/77/setting"),
        ("PATCH", "/products/77/setting"),
        ("GET", "/products/77/market"),
        ("GET", "/crawl/results/77"),
        ("GET", "/crawl/removed/77"),
        ("POST", "/crawl/execute"),
    ],
)
async def test_a_product_that_there_is_not_is_not_found(calm: Shop, method: str, path: str) -> None:
    setting = {"keyword": "x"}
    body: dict[str, Any] = {"name": "x", "setting": setting}
    if path.endswith("setting"):
        body = setting
    if path.endswith("execute"):
        body = {"productId": 77}
    response = await calm.http.request(method, f"/api{path}", json=body)
    assert check_error(response, 404, "not_found") == UNKNOWN


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/products"),
        ("POST", "/products"),
        ("DELETE", "/products/1"),
        ("PATCH", "/products/1/setting"),
        ("GET", "/products/1/market"),
        ("POST", "/crawl/execute"),
        ("GET", "/crawl/results/1"),
        ("GET", "/crawl/removed/1"),
        ("GET", "/prices/alerts"),
    ],
)
async def test_nothing_is_told_without_a_key(calm: Shop, method: str, path: str) -> None:
    response = await calm.http.request(method, f"/api{path}", headers={"X-API-Key": "other"})
    check_error(response, 401, "unauthorized")


FILLED = "must have 1 to {} characters, not only spaces and no control characters"
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"keyword": ""}, FILLED.format(200)),
    ({"keyword": " 　"}, FILLED.format(200)),
    ({"keyword": "x" * 201}, FILLED.format(200)),
    ({"keyword": "a\nb"}, FILLED.format(200)),
    ({"keyword": 5}, "Input should be a valid string"),
    ({"keyword": None}, "Input should be a valid string"),
    ({"min_price": -1}, "greater than or equal to 0"),
    ({"min_price": 1_000_000_000}, "less than or equal to 999999999"),
    ({"max_price": 1_000_000_000}, "less than or equal to 999999999"),
    ({"max_price": "5"}, "Input should be a valid integer"),
    ({"max_price": 1.5}, "Input should be a valid integer"),
    (
        {"min_price": 1000, "max_price": 999},
        "max_price is less than min_price; 0 means no bound",
    ),
    ({"enabled": 1}, "Input should be a valid boolean"),
    ({"enabled": None}, "Input should be a valid boolean"),
    ({"exclusions": ["x"] * 21}, "at most 20 items"),
    ({"exclusions": ["x" * 101]}, FILLED.format(100)),
    ({"exclusions": [" "]}, FILLED.format(100)),
    ({"exclusions": ["witch"]}, "'witch' is part of the keyword"),
    ({"exclusions": ["\uff33witch"]}, "would exclude everything: 'switch' is part of"),
    ({"exclusions": ["ok", "Switch ケース"]}, "the exclusion 'Switch ケース' would exclude"),
    ({"item_conditions": [0]}, "greater than or equal to 1"),
    ({"item_conditions": [7]}, "less than or equal to 6"),
    ({"item_conditions": 1}, "Input should be a valid list"),
    ({"target_price": 0}, "greater than or equal to 1"),
    ({"median_percent": 0}, "greater than or equal to 1"),
    ({"median_percent": 100}, "less than or equal to 99"),
    ({"category_id": 0}, "greater than or equal to 1"),
    ({"category_id": 2**31}, "less than or equal to 2147483647"),
    ({"keywords": "x"}, "Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("setting", "sentence"), REFUSED)
async def test_a_setting_that_makes_no_sense_is_refused_with_a_sentence(
    calm: Shop, setting: dict[str, Any], sentence: str
) -> None:
    whole = {"keyword": "Nintendo Switch", **setting}
    response = await calm.post("/products", name="x", setting=whole)
    assert sentence in check_error(response, 422, "bad_input")
    assert (await calm.get("/products"))["products"] == []


async def test_a_change_is_refused_with_the_same_sentences_and_changes_nothing(
    shop: Shop,
) -> None:
    path = f"/api/products/{(await shop.post('/products', **SWITCH)).json()['id']}"
    for setting, sentence in REFUSED:
        whole = {"keyword": "Nintendo Switch", **setting}
        answers = [
            await shop.http.put(path, json={"name": "x", "setting": whole}),
            await shop.http.put(f"{path}/setting", json=whole),
            await shop.http.patch(path, json={"name": "x", "setting": setting}),
            await shop.http.patch(f"{path}/setting", json=setting),
        ]
        for answer in answers:
            assert sentence in check_error(answer, 422, "bad_input")
    assert await shop.get("/products/1/setting") == KEPT


async def test_a_patch_is_judged_together_with_what_stays(shop: Shop) -> None:
    path = f"/api/products/{(await shop.post('/products', **SWITCH)).json()['id']}/setting"
    dear = await shop.http.patch(path, json={"min_price": 50_001})
    assert "less than min_price" in check_error(dear, 422, "bad_input")
    other = await shop.http.patch(path, json={"keyword": "ジャンク 品"})
    assert "'ジャンク' is part of the keyword" in check_error(other, 422, "bad_input")
    assert (await shop.send("PATCH", "/products/1/setting", {"max_price": 1000.0}))[
        "max_price"
    ] == 1000


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"name": "x"},
        {"setting": {"keyword": "x"}},
        {"name": " ", "setting": {"keyword": "x"}},
        {"name": "x" * 201, "setting": {"keyword": "x"}},
        {"name": "x", "setting": {}},
        {"name": "x", "setting": {"keyword": "x"}, "id": 5},
    ],
)
async def test_a_product_that_makes_no_sense_is_refused(calm: Shop, body: Any) -> None:
    check_error(await calm.post("/products", **body), 422, "bad_input")


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=501", "after=x", "after=0", "enabled=1", "enable=true", "format=x"]
)
async def test_words_that_nobody_knows_are_refused(calm: Shop, query: str) -> None:
    check_error(await calm.http.get(f"/api/products?{query}"), 422, "bad_input")


@pytest.mark.parametrize("name", ["x", "0", "-1", "1.0", "2147483648", "\uff11"])
async def test_an_id_that_is_none_is_refused(calm: Shop, name: str) -> None:
    check_error(await calm.http.get(f"/api/products/{name}"), 422, "bad_input")


async def test_jobs_of_the_watch_are_found_by_their_kind(shop: Shop) -> None:
    await shop.add(BUSY)
    found_jobs = (await shop.get("/jobs", kind="prices.listCrawl"))["jobs"]
    assert [job["args"] for job in found_jobs] == [{"type": "listCrawl", "productId": 1}]
