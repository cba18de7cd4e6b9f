"""The pages of the prices watch: what they show, in both languages, and what their forms do."""

import csv
import io
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mimawari.kernel.clock import VirtualClock
from mimawari.settings import DEFAULTS
from mimawari.watches.prices import alerts, products
from mimawari.watches.prices.models import Product, SellerType, Setting
from tests.conftest import Databases
from tests.prices.crawling import CAPPED, HOUR, NOON, add_product, apply, change, found
from tests.prices.test_market import sell
from tests.web.ground import HOSTILE, Browser, check_harmless, open_site

ENGLISH = {"Accept-Language": "en"}
FORM = {"name": "星くず郵便 画集", "keyword": "星くず郵便"}
SOLD_YEN = (900, 950, 1000, 1000, 1000, 1000, 1050, 1101, 9_000_000)


@dataclass(frozen=True, slots=True)
class Site:
    """Somebody who is logged in, and the watch behind the pages on a clock that stands still."""

    browser: Browser

    @property
    def store(self) -> Any:
        """The store behind the pages."""
        return self.browser.api.store

    async def see(self, path: str) -> str:
        """Look at a page in English that has all its words in Japanese too."""
        assert "<main" in await self.browser.see(path)
        return await self.browser.see(path, **ENGLISH)

    async def find(self, product_id: int) -> Product | None:
        """Find a product as it is kept."""
        async with self.store.read() as reader:
            return await products.find_product(reader, product_id)

    async def sold(self, **given: Any) -> Product:
        """Watch a product of which some were sold, one far out of line, and some are on sale."""
        product = await add_product(self.store, **given)
        items = [found(f"s{number}", price, sold=True) for number, price in enumerate(SOLD_YEN)]
        on_sale = [
            found("cheap", 800, seller_type=SellerType.SHOP),
            found("dear", 1300),
            found("junk", 10),
        ]
        await apply(self.store, product, 0, *items, *on_sale)
        for number, price in enumerate(SOLD_YEN):
            await sell(self.store, f"s{number}", price, NOON + number * HOUR)
        async with self.store.edit() as tx:
            await alerts.sync_alerts(tx, product, DEFAULTS, NOON)
        return product

    async def download(self, path: str) -> list[dict[str, str]]:
        """Take a file and read it as a spreadsheet does."""
        taken = await self.browser.get(path)
        assert taken.headers["content-type"] == "text/csv; charset=utf-8"
        return list(csv.DictReader(io.StringIO(taken.content.decode("utf-8-sig"), newline="")))


@pytest.fixture
async def site(databases: Databases, tmp_path: Path) -> AsyncIterator[Site]:
    """A site of the test's own."""
    clock = VirtualClock(NOON + 10 * HOUR)
    async with open_site(await databases.ready(), tmp_path, clock=clock) as browser:
        assert (await browser.log_in()).status_code == 303
        yield Site(browser)


async def test_before_there_is_a_product_the_page_says_so(site: Site) -> None:
    page = await site.see("/prices")
    assert "No alert is open." in page
    assert "mimawari prices product add NAME" in page
    for path in ("/prices/1", "/prices/99999999999", "/prices/1/results", "/prices/1/removed"):
        assert (await site.browser.get(path)).status_code == 404


async def test_a_product_of_which_nothing_was_seen_says_so(site: Site) -> None:
    product = await add_product(site.store)
    page = await site.see(f"/prices/{product.id}")
    assert "Nothing was seen to be sold yet." in page
    assert "All count: 0 of at least 8 sales cannot tell what is usual." in page
    assert "<svg" not in page
    assert "Nothing is like that." in await site.see(f"/prices/{product.id}/results")
    assert "Nothing was taken out." in await site.see(f"/prices/{product.id}/removed")


async def test_the_list_shows_what_products_are_worth(site: Site) -> None:
    await site.sold(target_price=850, median_percent=15)
    page = await site.see("/prices")
    for said in ("¥1,000", "¥800", "20% under", "3 open", "Medians of 1 of 30 days"):
        assert said in page
    assert "Doubtful: the price is far from what it sells for." in page
    assert "At the target: 星くず郵便 cheap was seen on sale for ¥800 (the target is ¥850)." in page
    assert "Far under the median: 星くず郵便 cheap was seen on sale for ¥800" in page
    (row,) = await site.download("/prices?format=csv")
    assert (row["median_yen"], row["cheapest_yen"], row["sold"]) == ("1000", "800", "8")


async def test_products_go_on_page_by_page(site: Site) -> None:
    for _ in range(21):
        await add_product(site.store)
    page = await site.see("/prices")
    assert page.count(">a product</a>") == 20
    assert 'href="?after=20"' in page
    assert (await site.see("/prices?after=20")).count(">a product</a>") == 1


async def test_a_product_shows_its_market(site: Site) -> None:
    product = await site.sold()
    page = await site.see(f"/prices/{product.id}")
    assert "The median of 8 sales in the last 30 days; half of them were ¥988 to ¥1,012." in page
    # A sale each, but for the one that is left out.
    assert page.count('r="3"') == 8
    assert page.count('class="band c1"') == 1
    assert "Cheapest on sale now, ¥800" in page
    assert 'class="line level c3"' in page
    assert "Median 0.1 days" in page
    assert "Left out of what was sold in this span: 1." in page
    assert page.index("星くず郵便 cheap") < page.index("20% under</td>")
    assert "星くず郵便 dear" not in page
    for said in ("less than ¥", "more than ¥"):
        assert said in page
    days = await site.download(f"/prices/{product.id}?format=csv&days=90")
    assert [day["count"] for day in days] == ["8"]


async def test_what_a_crawl_could_not_see_is_said(site: Site) -> None:
    product = await add_product(site.store)
    await apply(site.store, product, 0, found("a"), sight=CAPPED)
    page = await site.see(f"/prices/{product.id}")
    assert "Only the newest pages on sale were seen" in page
    assert "6/6 (capped)" in page


async def test_results_are_asked_for_by_what_they_are(site: Site) -> None:
    path = f"/prices/{(await site.sold()).id}/results"

    async def names(query: str) -> list[str]:
        return re.findall("星くず郵便 ([a-z0-9]+)<", await site.see(f"{path}?{query}"))

    assert len(await names("")) == 12
    assert await names("status=on_sale&sort=price&order=asc") == ["junk", "cheap", "dear"]
    assert await names("seller=shop") == ["cheap"]
    assert await names("outlier=true") == ["junk", "s8"]
    assert await names("search=dea&seller=&status=") == ["dear"]
    assert await names("min_price=1%2C050&max_price=%EF%BC%91101&status=sold") == ["s7", "s6"]
    rows = await site.download(f"{path}?format=csv&outlier=true")
    assert [row["external_id"] for row in rows] == ["junk", "s8"]


@pytest.mark.parametrize("query", ["min_price=much", "sort=name", "after=x", "outlier=maybe"])
async def test_results_that_cannot_be_asked_for_are_refused_with_a_sentence(
    site: Site, query: str
) -> None:
    product = await site.sold()
    refused = await site.browser.get(f"/prices/{product.id}/results?{query}")
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text


async def test_results_go_on_page_by_page(site: Site) -> None:
    product = await add_product(site.store)
    await apply(site.store, product, 0, *(found(f"m{number}") for number in range(31)))
    path = f"/prices/{product.id}/results"
    page = await site.see(f"{path}?sort=price")
    following = re.search(r'href="(\?sort=price&amp;after=[^"]+)"', page)
    assert following is not None
    assert page.count("jp.mercari.com") == 30
    rest = await site.see(path + following[1].replace("&amp;", "&"))
    assert rest.count("jp.mercari.com") == 1


async def test_what_was_taken_out_is_shown_with_why(site: Site) -> None:
    product = await add_product(site.store)
    items = [found(f"m{number}", name=f"星くず郵便 ジャンク {number}") for number in range(31)]
    await apply(site.store, product, 0, *items)
    await change(site.store, product, exclusions=("ジャンク",))
    await apply(site.store, product, 100)
    path = f"/prices/{product.id}/removed"
    page = await site.see(path)
    assert "its name has &#39;ジャンク&#39;" in page
    following = re.search(r'href="(\?before=[0-9]+)"', page)
    assert following is not None
    assert (await site.see(path + following[1])).count("its name has") == 1
    assert len(await site.download(f"{path}?format=csv")) == 31


async def test_a_product_is_added_as_people_type(site: Site) -> None:
    typed = {
        "min_price": "\uff11,000",
        "max_price": "",
        "target_price": "2500",
        "median_percent": "15",
        "category_id": "",
        "exclusions": "ジャンク\nまとめ売り",
        "condition_2": "on",
        "condition_1": "on",
    }
    sent = await site.browser.send("/prices", **FORM | typed)
    assert (sent.status_code, sent.headers["location"]) == (303, "/prices/1")
    product = await site.find(1)
    assert product is not None
    assert product.setting == Setting(
        keyword="星くず郵便",
        min_price=1000,
        target_price=2500,
        median_percent=15,
        exclusions=("ジャンク", "まとめ売り"),
        item_conditions=(1, 2),
    )
    page = await site.see("/prices/1")
    assert 'name="condition_2" checked' in page
    assert 'value="1000"' in page
    assert "No worker is running" in page


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", " ", "Name: must have 1 to 200 characters"),
        ("min_price", "cheap", "From, in yen: give a whole number"),
        ("max_price", "99", "The upper price is below the lower one."),
        ("median_percent", "100", "give 99 or less"),
        ("exclusions", "郵便", "would exclude everything"),
    ],
)
async def test_a_form_that_is_wrong_says_why_and_keeps_what_was_typed(
    site: Site, field: str, value: str, said: str
) -> None:
    await add_product(site.store)
    site.browser.http.cookies.set("lang", "en")
    for path in ("/prices", "/prices/1"):
        refused = await site.browser.send(path, **FORM | {"min_price": "100", field: value})
        assert refused.status_code == 422
        assert said in refused.text
        assert 'role="alert"' in refused.text
        assert (f">{value}<" if field == "exclusions" else f'value="{value}"') in refused.text
    assert await site.find(2) is None


async def test_a_product_is_changed_paused_crawled_and_removed(site: Site) -> None:
    product = await add_product(site.store)
    browser, path = site.browser, f"/prices/{product.id}"
    queue = site.store.queue
    assert (await browser.send(f"{path}/switch", enabled="false")).status_code == 303
    assert (await browser.send(path, **FORM)).headers["location"] == path
    changed = await site.find(product.id)
    assert changed is not None
    assert (changed.name, changed.setting.enabled) == ("星くず郵便 画集", False)
    assert "paused" in await site.see("/prices")
    assert (await browser.send(f"{path}/switch", enabled="true")).status_code == 303
    assert (await browser.send(f"{path}/crawl")).headers["location"] == path
    assert await queue.find_live(products.key_of(product.id)) is not None
    assert (await browser.send(f"{path}/remove")).headers["location"] == "/prices"
    for part in ("", "/switch", "/crawl", "/remove"):
        assert (await browser.send(f"{path}{part}", **FORM)).status_code == 404


async def test_no_form_is_taken_without_its_token(site: Site) -> None:
    await add_product(site.store)
    for part in ("", "/1", "/1/switch", "/1/crawl", "/1/remove"):
        refused = await site.browser.http.post(f"/prices{part}", data=FORM)
        assert refused.status_code == 422
    product = await site.find(1)
    assert product is not None
    assert (product.name, await site.find(2)) == ("a product", None)


async def test_hostile_texts_stay_text(site: Site) -> None:
    product = await add_product(site.store, keyword=HOSTILE, exclusions=("<b>",), target_price=5000)
    hostile: dict[str, Any] = {
        "name": HOSTILE,
        "selling_url": "javascript:alert(1)",
        "image_url": HOSTILE,
    }
    await apply(site.store, product, 0, *(found(f"m{n}", sold=True, **hostile) for n in range(8)))
    for number in range(8):
        await sell(site.store, f"m{number}", 1000, NOON)
    await apply(site.store, product, 1, found("a", 900, **hostile), found("b", 1, **hostile))
    async with site.store.edit() as tx:
        await products.change_product(tx, product.id, HOSTILE, product.setting, NOON)
        await alerts.sync_alerts(tx, product, DEFAULTS, NOON)
    for path in ("/prices", "/prices/1", "/prices/1/results"):
        page = await site.see(path)
        check_harmless(page)
        assert "javascript:" not in page
    await change(site.store, product, keyword="other")
    await apply(site.store, product, 100)
    check_harmless(await site.see("/prices/1/removed"))
