"""The routes of the hot watch keep to their own description, whatever is sent to them."""

from pathlib import Path

from tests.app.test_schemathesis import check_description
from tests.conftest import Databases
from tests.hot.api_ground import open_hot, seen

EXAMPLES = 5


async def test_the_hot_routes_keep_to_their_description(
    databases: Databases, tmp_path: Path
) -> None:
    async with open_hot(databases.fresh("sqlite"), tmp_path) as hot:
        (ip_id,) = await hot.named("星くず郵便")
        await hot.crawl(ip_id, [seen("m1")])
        ours = ("--include-path-regex", "^/api/v1")
        await check_description(hot.api, tmp_path, EXAMPLES, *ours)
