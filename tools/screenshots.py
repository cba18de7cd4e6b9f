"""Run the demo and keep a picture of each of its pages in docs/pages."""
# ruff: noqa: INP001 - a script, not part of a package

from __future__ import annotations

import argparse
import asyncio
import io
import re
import shutil
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import av
from playwright.async_api import async_playwright

from mimawari.web.pages import PAGES
from mimawari.web.words import LANGUAGES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from playwright.async_api import Browser, Page

FOLDER = Path(__file__).parents[1] / "docs" / "pages"
WAIT_SECONDS = 40.0
"""By then a site has turned us away, a stream was black and a search has found all it can."""
WIDTH, HEIGHT = 1280, 1000
COLOURS = 64
TICK = Fraction(1, 25)
FLAGS = ("--no-sandbox", "--disable-gpu")
_LINK = re.compile(r"http://\S+/login\?once=\w+")
_PLACE = re.compile(r"\{(\w+)(?::\w+)?\}")


def name_of(path: str) -> str:
    """Name the picture of a page after its path."""
    return _PLACE.sub(r"\1", path).strip("/").replace("/", "-") or "overview"


def list_paths() -> list[str]:
    """List the paths of all pages that can be looked at, those without a place in them first."""
    paths = [path for path, _, methods in PAGES if "GET" in methods]
    return sorted(paths, key=lambda path: (path.count("{"), path))


def find_link(path: str, links: Iterable[str]) -> str | None:
    """Find the first link that leads to a page, and to no other."""
    wanted, others = re.compile(_PLACE.sub("[^/?#]+", path)), list_paths()
    found = (link for link in links if wanted.fullmatch(link) and link not in others)
    return next(found, None)


def shrink(picture: bytes) -> bytes:
    """Return a PNG with few colours, which pages have."""
    with av.open(io.BytesIO(picture), "r") as opened:
        frame = next(opened.decode(video=0))
    graph = av.filter.Graph()
    source = graph.add_buffer(
        width=frame.width, height=frame.height, format=frame.format, time_base=TICK
    )
    split, palette = graph.add("split"), graph.add("palettegen", f"max_colors={COLOURS}")
    use, sink = graph.add("paletteuse", "dither=none"), graph.add("buffersink")
    source.link_to(split)
    split.link_to(palette, 0, 0)
    split.link_to(use, 1, 0)
    palette.link_to(use, 0, 1)
    use.link_to(sink)
    graph.configure()
    graph.push(frame)
    graph.push(None)
    encoder = av.CodecContext.create("png", "w")
    encoder.width, encoder.height = frame.width, frame.height
    encoder.pix_fmt, encoder.time_base = "pal8", TICK
    packets = [*encoder.encode(graph.vpull()), *encoder.encode(None)]
    return b"".join(bytes(packet) for packet in packets)


async def read_lines(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Read lines until there are no more."""
    while line := await stream.readline():
        yield line.decode()


async def start_demo() -> tuple[asyncio.subprocess.Process, str]:
    """Start a demo, and return it with the link that logs in."""
    program = Path(sys.executable).parent / "mimawari"
    process = await asyncio.create_subprocess_exec(
        program, "demo", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    if process.stdout is None:
        raise OSError("the demo has no output")
    async for line in read_lines(process.stdout):
        if found := _LINK.search(line):
            return process, found[0]
    raise OSError("the demo did not start")


async def take_pictures(page: Page, address: str, folder: Path) -> list[str]:
    """Take a picture of each page; return the names of those to which nothing leads."""
    links: list[str] = []
    missing = []
    for path in list_paths():
        link = find_link(path, links) if "{" in path else path
        if link is None:
            missing.append(name_of(path))
            continue
        answer = await page.goto(address + link)
        if answer is None or not answer.ok:
            missing.append(name_of(path))
            continue
        links += await page.eval_on_selector_all("a", "all => all.map(a => a.getAttribute('href'))")
        picture = shrink(await page.screenshot())
        await asyncio.to_thread((folder / f"{name_of(path)}.png").write_bytes, picture)
    return missing


async def open_page(browser: Browser, language: str, state: Any = None) -> Page:
    """Open a page for a visitor of a language."""
    return await browser.new_page(
        viewport={"width": WIDTH, "height": HEIGHT},
        locale=language,
        timezone_id="Asia/Tokyo",
        color_scheme="light",
        storage_state=state,
    )


async def main(folder: Path, executable: str) -> None:
    """Take all pictures, and say of which pages there is none: to some, nothing leads just then."""
    process, link = await start_demo()
    address = link.partition("/login")[0]
    try:
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=executable, args=FLAGS)
            first = await open_page(browser, LANGUAGES[0])
            await first.goto(link)
            state = await first.context.storage_state()
            await asyncio.sleep(WAIT_SECONDS)
            for language in LANGUAGES:
                (folder / language).mkdir(parents=True, exist_ok=True)
                page = await open_page(browser, language, state)
                missing = await take_pictures(page, address, folder / language)
                if missing:
                    sys.stderr.write(f"no picture ({language}) of: {', '.join(missing)}\n")
            await browser.close()
    finally:
        process.terminate()
        await process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where pictures are kept")
    usual = shutil.which("chromium") or ""
    parser.add_argument("--chromium", default=usual, help="the Chromium to start")
    options = parser.parse_args()
    asyncio.run(main(options.folder, options.chromium))
