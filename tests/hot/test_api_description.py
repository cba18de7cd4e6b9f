"""The routes of the hot watch keep to their own description, whatever is sent to them."""

from pathlib import Path

from tests.app.description import PUBLIC, check_description
from tests.hot.api_ground import Hot, seen


async def test_the_hot_routes_keep_to_their_description(hot: Hot, tmp_path: Path) -> None:
    (ip_id,) = await hot.named("星くず郵便")
    await hot.crawl(ip_id, [seen("m1")])
    await check_description(hot.api.sender, tmp_path, PUBLIC["hot"])
