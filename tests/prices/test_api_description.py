"""The routes of the prices watch keep to their own description, whatever is sent to them."""

from pathlib import Path

from tests.app.test_schemathesis import check_description
from tests.prices.api_ground import Shop

EXAMPLES = 3
OURS = "^/api/(products|crawl|prices)"
# No description can say that of two prices one is the larger, nor what a keyword may not hold.
REFUSALS = """
[[operations]]
include-path-regex = "^/api/products"
include-method = ["POST", "PUT", "PATCH"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
"""


async def test_the_prices_routes_keep_to_their_description(shop: Shop, tmp_path: Path) -> None:
    await shop.sold()
    (tmp_path / "schemathesis.toml").write_text(REFUSALS, encoding="utf-8")
    await check_description(shop.api, tmp_path, EXAMPLES, "--include-path-regex", OURS)
