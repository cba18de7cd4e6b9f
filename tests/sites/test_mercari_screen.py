"""What a page tells of itself in a browser is taken as far as it makes sense, and no further."""

from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec, TypeVar

import pytest

from mimawari.errors import Invalid
from mimawari.net.page import Site
from mimawari.sites.mercari import BrowserMarket, Query

QUERY = Query(keyword="あの花")
P = ParamSpec("P")
T = TypeVar("T")


class Desk:
    """Reads pages on the spot."""

    async def read(self, parse: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return parse(*args, **kwargs)


def ids(count: int) -> list[str]:
    return [f"m{number:011}" for number in range(count)]


def cell(item_id: str) -> str:
    return f"""<li data-testid="item-cell"><a href="/item/{item_id}" data-testid="thumbnail-link">
      <div class="merItemThumbnail" aria-label="品の画像 300円"></div></a></li>"""


class Odd:
    """A page whose scripts have changed what it tells of itself."""

    def __init__(self, said: Any) -> None:
        self._said = said

    async def evaluate(self, script: str, asked: dict[str, Any]) -> Any:
        assert script.startswith(("async", "("))
        return self._said if "scrolls" in asked else None

    async def content(self) -> str:
        return f"<ul>{cell('m00000000001')}</ul>"

    async def render(self, site: Site, url: str, walk: Callable[[Any], Awaitable[T]]) -> T:
        assert (site.name, url[:9]) == ("mercari", "http://x/")
        return await walk(self)


def snapshot(cells: int, shown: int) -> dict[str, Any]:
    """Tell of so many cells, of which so many are drawn."""
    places = [[at, f"/item/{name}", cell(name)] for at, name in enumerate(ids(shown))]
    return {"cells": cells, "isEnd": True, "drawn": places}


@pytest.mark.parametrize(("cells", "shown"), [(20, 20), (20, 19), (20, 10)])
async def test_a_list_is_taken_as_far_as_it_is_drawn(cells: int, shown: int) -> None:
    odd = Odd(snapshot(cells, shown))
    page = await BrowserMarket(odd, "http://x", Desk()).search_page(QUERY)
    assert [item.id for item in page.items] == ids(shown)
    assert len(page.refused) == cells - shown


async def test_a_list_of_which_most_is_never_drawn_is_not_understood() -> None:
    with pytest.raises(Invalid, match="11 of 20"):
        await BrowserMarket(Odd(snapshot(20, 9)), "http://x", Desk()).search_page(QUERY)


@pytest.mark.parametrize(
    "said",
    [
        *(None, 5, "x", [], {}, {"cells": 1, "isEnd": True}),
        {"cells": float("inf"), "isEnd": True, "drawn": []},
        {"cells": 1, "isEnd": True, "drawn": [[1, 2]]},
        {"cells": 1, "isEnd": True, "drawn": [None]},
        {"cells": "x", "isEnd": True, "drawn": 5},
        {"cells": 1, "isEnd": True, "drawn": [[0, "a", "x" * 5_000_000]]},
        {"cells": 1, "isEnd": True, "drawn": [[0, "a", "no cell"]]},
    ],
    ids=range(12),
)
async def test_a_page_that_tells_nonsense_of_itself_is_not_understood(said: Any) -> None:
    with pytest.raises(Invalid):
        await BrowserMarket(Odd(said), "http://x", Desk()).search_page(QUERY)
