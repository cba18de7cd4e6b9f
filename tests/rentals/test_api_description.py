"""The routes of the rentals watch keep to their own description, whatever is sent to them."""

from pathlib import Path

from tests.app.description import PUBLIC, check_description
from tests.conftest import Databases
from tests.rentals.api_ground import START, open_rooms
from tests.rentals.seeing import keep, on_page

SITE_URL = "https://realestate.yahoo.co.jp"


async def test_the_rentals_routes_keep_to_their_description(
    databases: Databases, tmp_path: Path
) -> None:
    # The description names addresses of the real site; nobody works here, so none is asked for.
    async with open_rooms(await databases.ready(), tmp_path, rentals_url=SITE_URL) as rooms:
        await keep(rooms.api.store, START, on_page("0" * 44))
        await check_description(rooms.api.sender, tmp_path, PUBLIC["rentals"])
