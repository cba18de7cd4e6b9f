"""Answers that are kept: the same until something is applied, and never older than that."""

import pytest
from pydantic import BaseModel
from sqlalchemy import update

from mimawari.edges import response_cache
from mimawari.watches.hot.tables import hours, ips, items
from tests.hot.api_ground import HOUR, Hot, listed

PATHS = [
    "/leaderboard?hours=24&type=inflow",
    "/ips/1/liquidity?hours=24",
    "/ips/1/stats/hourly",
    "/ips/1/items",
]


async def spoil(hot: Hot) -> None:
    """Change what is kept behind the cache's back."""
    async with hot.api.store.edit() as tx:
        await tx.execute(update(ips).values(name="spoilt", inflow_total=77))
        await tx.execute(update(items).values(title="spoilt"))
        await tx.execute(update(hours).values(inflow=77, inflow_total=77))


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_is_kept_until_a_worker_applies_a_crawl(hot: Hot, path: str) -> None:
    await hot.flow("a", inflow=2, outflow=1)
    await hot.clock.advance(HOUR)
    first = (await hot.http.get(f"/api/v1{path}")).content
    await spoil(hot)
    assert (await hot.http.get(f"/api/v1{path}")).content == first
    await hot.work(1, listed("new", 1))
    assert (await hot.http.get(f"/api/v1{path}")).content != first


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_is_kept_for_ten_minutes(hot: Hot, path: str) -> None:
    await hot.flow("a", inflow=2, outflow=1)
    await hot.clock.advance(HOUR)
    first = (await hot.http.get(f"/api/v1{path}")).content
    await spoil(hot)
    await hot.clock.advance(response_cache.KEPT_FOR * 0.99)
    assert (await hot.http.get(f"/api/v1{path}")).content == first
    await hot.clock.advance(response_cache.KEPT_FOR * 0.01)
    assert (await hot.http.get(f"/api/v1{path}")).content != first


async def test_an_apply_forgets_nothing_of_other_ips(hot: Hot) -> None:
    await hot.flow("a", inflow=2, outflow=1)
    other = await hot.flow("b", inflow=2, outflow=1)
    first = await hot.get("/ips/1/items")
    await spoil(hot)
    await hot.work(other, listed("new", 1))
    assert await hot.get("/ips/1/items") == first


async def test_any_number_of_ranks_is_answered_from_one_kept_board(hot: Hot) -> None:
    for name in "abc":
        await hot.flow(name, inflow=1, outflow=1)
    await hot.clock.advance(HOUR)
    assert len((await hot.get("/leaderboard", limit=1))["entries"]) == 1
    await spoil(hot)
    entries = (await hot.get("/leaderboard", limit=100))["entries"]
    assert [entry["name"] for entry in entries] == ["a", "b", "c"]


async def test_a_new_hour_has_a_board_of_its_own(hot: Hot) -> None:
    await hot.flow("a", inflow=1, outflow=1)
    await hot.clock.advance(HOUR - response_cache.KEPT_FOR / 2)
    assert (await hot.get("/leaderboard"))["entries"] == []
    await hot.clock.advance(response_cache.KEPT_FOR / 2)
    assert len((await hot.get("/leaderboard"))["entries"]) == 1


async def test_other_hours_than_the_kept_ones_are_answered_anew(hot: Hot) -> None:
    await hot.flow("a", inflow=1, outflow=1)
    await hot.clock.advance(2 * HOUR)
    for span, inflow in ((24, 1), (1, 0), (24, 1)):
        found = await hot.get("/ips/1/liquidity", hours=span)
        assert (found["hours"], found["inflow"]) == (span, inflow)


class Answer(BaseModel):
    """Something to keep."""

    text: str


async def test_an_answer_that_was_made_while_something_was_applied_is_not_kept(hot: Hot) -> None:
    cache = hot.api.store.cache

    async def slow() -> Answer:
        await cache.drop("some:")
        return Answer(text="old")

    async def fast() -> Answer:
        return Answer(text="new")

    async def overtaken() -> Answer:
        await cache.drop("some:")
        await response_cache.find_or_make(cache, "some:key", Answer, fast)
        return Answer(text="old")

    for made in (slow, overtaken):
        await cache.drop("some:")
        assert (await response_cache.find_or_make(cache, "some:key", Answer, made)).text == "old"
        assert (await response_cache.find_or_make(cache, "some:key", Answer, fast)).text == "new"
        kept = await response_cache.find_or_make(cache, "some:key", Answer, slow)
        assert kept.text == "new"


@pytest.mark.parametrize("kept", [b"", b"{", b'{"words": "old"}', b"\xff"])
async def test_an_answer_of_another_form_is_made_anew(hot: Hot, kept: bytes) -> None:
    cache = hot.api.store.cache

    async def make() -> Answer:
        return Answer(text="new")

    await cache.set("some:key", kept, HOUR)
    assert (await response_cache.find_or_make(cache, "some:key", Answer, make)).text == "new"
    assert await cache.get("some:key") == b'{"text":"new"}'
