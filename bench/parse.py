"""The part `parse`: pages read per second, against BeautifulSoup and parsel for the same fields."""

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import httpx2
from bs4 import BeautifulSoup
from parsel import Selector
from rich.progress import Progress

from bench.report import Part, Row, ratio
from mimawari.kernel.clock import VirtualClock
from mimawari.sim.world import make_world
from mimawari.sites.mercari import parse_rendered
from mimawari.sites.yahoo_realestate import parse_list

RUNS = 3
SECONDS = 2.0
SEARCH = "/_cells?status=sold_out%7Ctrading&sort=created_time&order=desc&layout=old"
HOST = "http://world"
LABEL = re.compile(r"(.*)の画像(?: 売り切れ)? ([0-9,]+)円", re.DOTALL)
ID = re.compile(r"/(?:item|shops/product)/([0-9A-Za-z]+)")

Fields = tuple[str, ...]
Reading = Callable[[bytes], list[Fields]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and how ours and the peers read the same fields from it."""

    name: str
    body: bytes
    readings: Mapping[str, Reading]


async def fetch_pages() -> list[Page]:
    """Let the simulated world draw a search of 120 sold items and a list of rentals."""
    world = make_world(VirtualClock())
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=world), base_url=HOST) as http:
        index = (await http.get("/")).text
        rentals = re.search(r"/rent/search/[^\"]+", index)
        if rentals is None:
            raise LookupError("the world shows no rentals")
        cells: list[str] = json.loads((await http.get(SEARCH)).text)["cells"]
        listed = (await http.get(rentals.group())).content
    drawn = "".join(f'<li data-testid="item-cell">{cell}</li>' for cell in cells)
    search = f"<!doctype html><html><body><main><ul>{drawn}</ul></main></body></html>".encode()
    return [
        Page("search", search, {"ours": search_ours, "bs4": search_bs4, "parsel": search_parsel}),
        Page("rentals", listed, {"ours": list_ours, "bs4": list_bs4, "parsel": list_parsel}),
    ]


def item(link: str, label: str, sticker: object, image: str) -> Fields:
    """Make an item's fields of what a cell says."""
    named, told = ID.search(link), LABEL.fullmatch(label)
    if named is None or told is None:
        raise ValueError(label)
    return named[1], told[1], told[2].replace(",", ""), str(bool(sticker)), image


def search_ours(body: bytes) -> list[Fields]:
    """Read the items of a search as the product does, checks and all."""
    return [
        (one.id, one.title, str(one.price_yen), str(one.status.is_sold), str(one.image_url))
        for one in parse_rendered(body, HOST).items
    ]


def search_bs4(body: bytes) -> list[Fields]:
    """Read the same fields with BeautifulSoup on lxml."""
    found: list[Fields] = []
    for cell in BeautifulSoup(body, "lxml").select("li[data-testid=item-cell]"):
        link = cell.select_one("a[data-testid=thumbnail-link]")
        label, image = cell.select_one(".merItemThumbnail"), cell.select_one("img")
        if link is None or label is None or image is None:
            continue
        sticker = cell.select_one("[data-testid=thumbnail-sticker]")
        source = HOST + str(image["src"])
        found.append(item(str(link["href"]), str(label["aria-label"]), sticker, source))
    return found


def search_parsel(body: bytes) -> list[Fields]:
    """Read the same fields with parsel."""
    return [
        item(
            cell.css("a[data-testid=thumbnail-link]").attrib["href"],
            cell.css(".merItemThumbnail").attrib["aria-label"],
            cell.css("[data-testid=thumbnail-sticker]"),
            HOST + cell.css("img").attrib["src"],
        )
        for cell in Selector(body=body, type="html").css("li[data-testid=item-cell]")
    ]


def list_ours(body: bytes) -> list[Fields]:
    """Read the rooms of a list as the product does, checks and all; give the ids and addresses."""
    return [
        (room.property_id, room.detail_url)
        for room in parse_list(body, f"{HOST}/rent/search/").rooms
    ]


def list_bs4(body: bytes) -> list[Fields]:
    """Read the same fields, and the texts of the others, with BeautifulSoup on lxml."""
    found: list[Fields] = []
    for room in BeautifulSoup(body, "lxml").select("li.ListCassetteRoom__item"):
        mark, link = room.select_one("input._propertyCheckbox"), room.select_one("a")
        if mark is None or link is None:
            continue
        for selector in ROOM_TEXTS:
            [part.get_text() for part in room.select(selector)]
        found.append((str(mark["value"]), HOST + str(link["href"])))
    return found


def list_parsel(body: bytes) -> list[Fields]:
    """Read the same fields, and the texts of the others, with parsel."""
    found: list[Fields] = []
    for room in Selector(body=body, type="html").css("li.ListCassetteRoom__item"):
        mark = room.css("input._propertyCheckbox")
        if not mark:
            continue
        for selector in ROOM_TEXTS:
            room.css(f"{selector} ::text").getall()
        link = room.css("a.ListCassetteRoom__textLink").attrib["href"]
        found.append((mark.attrib["value"], HOST + link))
    return found


ROOM_TEXTS = (
    ".ListCassetteRoom__dtl__price",
    ".ListCassetteRoom__dtl__layout",
    ".ListCassetteRoom__dtl__deposit",
)


def pages_per_second(reading: Reading, body: bytes) -> float:
    """Read a page again and again for a while."""
    count, start = 0, time.perf_counter()
    while (spent := time.perf_counter() - start) < SECONDS:
        reading(body)
        count += 1
    return count / spent


def rows_of(page: Page, values: Mapping[str, Sequence[float]]) -> list[Row]:
    """Set our median beside each peer's."""
    medians = {name: median(found) for name, found in values.items()}
    ours = medians.pop("ours")
    return [
        Row(
            bench="parse",
            engine=page.name,
            measure="pages_per_second",
            ours=ours,
            peer=name,
            peer_value=value,
            ratio_to_peer=ratio(ours, value),
            floor=None,
            ratio_to_floor=None,
            runs=RUNS,
        )
        for name, value in medians.items()
    ]


def run(progress: Progress) -> Part:
    """Check that all read the same, then measure them in turns."""
    rows, notes = [], []
    for page in asyncio.run(fetch_pages()):
        found = {name: reading(page.body) for name, reading in page.readings.items()}
        if any(one != found["ours"] for one in found.values()):
            raise ValueError(f"{page.name}: not all read the same")
        notes.append(f"{page.name}: {len(page.body):,} bytes, {len(found['ours'])} items")
        values: dict[str, list[float]] = {name: [] for name in page.readings}
        task = progress.add_task(page.name, total=RUNS * len(values))
        for _ in range(RUNS):
            for name, reading in page.readings.items():
                values[name].append(pages_per_second(reading, page.body))
                progress.advance(task)
        rows += rows_of(page, values)
    notes.append(
        "ours: the product's own parser with its bounds, checks and contract, into typed values;"
        " peers: the same fields by the same selectors, BeautifulSoup on lxml"
    )
    return Part(rows, notes)
