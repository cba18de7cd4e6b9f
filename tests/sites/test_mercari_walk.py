"""A walk over the pages of a search ends where the site does, and outlives a failed page."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from mimawari.errors import Blocked, Gone, Invalid, JobError, Transient, Wait
from mimawari.sites.contract import Refused
from mimawari.sites.mercari import Detail, Item, Kind, Query, Result, SearchPage, Status, walk

QUERY = Query(keyword="フィギュア")
LATER = datetime(2026, 1, 1, tzinfo=UTC)


def page(number: int, token: str) -> SearchPage:
    item = Item(
        id=f"m{number:011}",
        kind=Kind.ORDINARY,
        title=f"{number}",
        status=Status.ON_SALE,
        price_yen=300,
    )
    return SearchPage((item,), (), token)


class Pages:
    """A market of so many pages, some of which fail."""

    def __init__(self, *pages: SearchPage | JobError) -> None:
        self._pages = pages
        self.asked: list[str] = []

    async def search_page(self, query: Query, token: str = "") -> SearchPage:
        assert query is QUERY
        self.asked.append(token)
        found = self._pages[len(self.asked) - 1]
        if isinstance(found, JobError):
            raise found
        return found

    async def item(self, item_id: str) -> Detail:
        raise Gone(item_id)


async def results(market: Pages, pages: int) -> list[Result]:
    return [result async for result in walk(market, QUERY, pages)]


async def fill(found: list[Result], market: Pages) -> None:
    """Keep what comes before an error, too."""
    async for result in walk(market, QUERY, 10):
        found += [result]


def seen(found: Sequence[Result]) -> list[str]:
    """Tell what came of each page: its item's title, nothing, or the kind of the error."""
    words = []
    for result in found:
        if result.page is None:
            words.append(type(result.error).__name__)
        else:
            words.append("".join(item.title for item in result.page.items))
    return words


async def test_a_walk_takes_the_pages_in_order_and_ends_with_the_last_one() -> None:
    market = Pages(page(1, "v1:1"), page(2, "v1:2"), page(3, ""))
    found = await results(market, 10)
    assert market.asked == ["", "v1:1", "v1:2"]
    assert seen(found) == ["1", "2", "3"]
    assert [result.number for result in found] == [1, 2, 3]
    assert not any(result.capped for result in found)


async def test_a_walk_goes_by_the_sites_own_tokens_of_any_form() -> None:
    market = Pages(page(1, "cursor-abc"), page(2, "next/7"), page(3, ""))
    await results(market, 10)
    assert market.asked == ["", "cursor-abc", "next/7"]


async def test_an_empty_page_ends_a_walk_even_where_the_site_names_another() -> None:
    market = Pages(page(1, "v1:1"), SearchPage((), (), "v1:2"))
    found = await results(market, 10)
    assert market.asked == ["", "v1:1"]
    assert seen(found) == ["1", ""]
    assert not found[-1].capped


async def test_a_page_on_which_all_were_refused_is_not_an_empty_one() -> None:
    market = Pages(SearchPage((), (Refused("x", "y"),), "v1:1"), page(2, ""))
    assert seen(await results(market, 10)) == ["", "2"]


async def test_a_walk_goes_no_further_than_it_is_told_and_says_so() -> None:
    market = Pages(page(1, "v1:1"), page(2, "v1:2"), page(3, ""))
    found = await results(market, 2)
    assert market.asked == ["", "v1:1"]
    assert [result.capped for result in found] == [False, True]


@pytest.mark.parametrize("last", [page(2, ""), SearchPage((), (), "v1:2")])
async def test_a_walk_that_ends_where_it_was_to_end_anyway_is_not_capped(last: SearchPage) -> None:
    found = await results(Pages(page(1, "v1:1"), last), 2)
    assert [result.capped for result in found] == [False, False]


@pytest.mark.parametrize("pages", [0, -1])
async def test_a_walk_of_no_pages_asks_for_none(pages: int) -> None:
    market = Pages()
    assert await results(market, pages) == []
    assert market.asked == []


@pytest.mark.parametrize("error", [Transient("slow"), Invalid("strange", page=b"<html>")])
async def test_a_page_that_fails_fails_alone(error: Transient | Invalid) -> None:
    market = Pages(page(1, "v1:1"), error, page(3, "v1:3"), page(4, ""))
    found = await results(market, 10)
    assert market.asked == ["", "v1:1", "v1:2", "v1:3"]
    assert seen(found) == ["1", type(error).__name__, "3", "4"]
    assert (found[1].error, found[1].reason) == (error, str(error))
    assert found[0].reason == ""


async def test_the_first_page_may_fail_too() -> None:
    market = Pages(Transient("slow"), page(2, ""))
    assert seen(await results(market, 10)) == ["Transient", "2"]
    assert market.asked == ["", "v1:1"]


async def test_a_walk_of_which_every_page_fails_ends_at_its_cap() -> None:
    market = Pages(*[Transient("slow")] * 9)
    found = await results(market, 5)
    assert market.asked == ["", "v1:1", "v1:2", "v1:3", "v1:4"]
    assert [result.capped for result in found] == [False] * 4 + [True]


async def test_a_page_that_fails_ends_the_walk_where_nobody_knows_the_next_one() -> None:
    market = Pages(page(1, "cursor-abc"), Transient("slow"), page(3, ""))
    found = await results(market, 10)
    assert seen(found) == ["1", "Transient"]
    assert market.asked == ["", "cursor-abc"]


async def test_a_site_that_asks_for_a_pause_is_asked_for_no_further_page() -> None:
    market = Pages(page(1, "v1:1"), Transient("busy", until=LATER), page(3, ""))
    found = await results(market, 10)
    assert seen(found) == ["1", "Transient"]
    assert market.asked == ["", "v1:1"]


@pytest.mark.parametrize(
    "error", [Blocked("mercari", "403"), Gone("404"), Wait(LATER, "limit", "mercari")]
)
async def test_what_is_no_pages_own_failure_ends_the_walk(error: JobError) -> None:
    market = Pages(page(1, "v1:1"), error, page(3, ""))
    found: list[Result] = []
    with pytest.raises(type(error)):
        await fill(found, market)
    assert seen(found) == ["1"]
    assert market.asked == ["", "v1:1"]


async def test_a_site_that_leads_in_a_circle_is_left() -> None:
    market = Pages(page(1, "v1:1"), page(2, "v1:1"), page(3, "v1:1"))
    assert seen(await results(market, 10)) == ["1", "2"]
