"""The routes of the prices watch keep to their own description, whatever is sent to them."""

from pathlib import Path

from tests.app.description import PUBLIC, check_description
from tests.prices.api_ground import Shop


async def test_the_prices_routes_keep_to_their_description(shop: Shop, tmp_path: Path) -> None:
    await shop.sold()
    await check_description(shop.api.sender, tmp_path, PUBLIC["prices"])
