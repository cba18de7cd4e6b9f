"""Pages of any encoding and any malice: within bounds, and never on the event loop."""

import asyncio
import os
import pickle
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.errors import BadInput, Invalid
from mimawari.net import html
from mimawari.net.html import MOST_DEPTH, MOST_TAGS, charset_of, parse_html
from mimawari.net.page import MOST_BYTES
from mimawari.net.reader import Reader

MIB = 1024 * 1024


def text_of(body: bytes, charset: str | None = None) -> str:
    """Read the text of a page's body."""
    return str(parse_html(body, charset).text(strip=True))


def count_cells(body: bytes) -> int:
    """Count list items."""
    return len(parse_html(body).css("li"))


def refuse(words: str) -> None:
    """Raise an error of ours."""
    raise BadInput(words, code="no")


def blunder() -> None:
    """Raise an error that is a bug."""
    raise KeyError("blunder")


@pytest.mark.parametrize(
    ("body", "said", "expected"),
    [
        ("<p>見回り".encode(), None, "見回り"),
        (b"\xef\xbb\xbf<p>" + "見".encode(), "shift_jis", "見"),
        ("<p>見回り".encode("shift_jis"), "Shift_JIS", "見回り"),
        ("<p>①".encode("cp932"), "shift_jis", "①"),
        ('<meta charset="euc-jp"><p>見回り'.encode("euc-jp"), None, "見回り"),
        ('<meta http-equiv=x content="text/html; charset=shift_jis"><p>見'.encode("cp932"), None,
         "見"),
        ("\ufeff<p>見".encode("utf-16"), None, "見"),
        ("<p>見".encode(), "no-such-charset", "見"),
        ("<p>見".encode(), "zlib", "見"),
        ("<p>見".encode(), "undefined", "見"),
        ("<p>見".encode(), "\x00", "見"),
    ],
)  # fmt: skip
def test_a_page_is_read_in_its_own_encoding(body: bytes, said: str | None, expected: str) -> None:
    assert text_of(body, said).strip("\ufeff") == expected


@pytest.mark.parametrize("junk", [b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\x80", b"\xc3"])
def test_junk_among_the_letters_does_no_harm(junk: bytes) -> None:
    text = text_of(b"<p>a" + junk + b"b</p>")
    assert text.startswith("a")
    assert text.endswith("b")
    text.encode()


@pytest.mark.parametrize(
    "body",
    [
        b"<div>" * 200_000,
        b"<DIV class='x'>" * (MOST_DEPTH + 1),
        b"<ul><li>" * (MOST_DEPTH + 1),
        b"<b>x" * 200_000,
        b"<a></a>" * MOST_TAGS,
        b"<custom-element>" * 1000,
        b"<p>" * (MOST_TAGS + 1),
        b"x" * (MOST_BYTES + 1),
        b"<" * (4 * MIB),
    ],
    ids=lambda body: f"{body[:8]!r} {len(body)}",
)
def test_a_page_that_is_too_deep_or_too_large_is_refused(body: bytes) -> None:
    with pytest.raises(Invalid, match=r"deeper|more than|larger"):
        parse_html(body)


@pytest.mark.parametrize(
    ("body", "selector", "count"),
    [
        (b"<div>" * MOST_DEPTH + b"<i>", "i", 0),
        (b"<div>" * (MOST_DEPTH - 1) + b"<i>", "i", 1),
        (b"<div><i></i></div>" * 20_000, "i", 20_000),
        (b"</div>" * 5_000 + b"<i>", "i", 1),
        (b"<li>" * 20_000, "li", 20_000),
        (b"<p>" * 20_000, "p", 20_000),
        (b"<br><img><input>" * 10_000, "img", 10_000),
        (b"<i title='" + b"x" * (7 * MIB) + b"'>", "i", 1),
        (b"<table>" + b"<tr><td>" * 10_000, "td", 10_000),
    ],
    ids=lambda value: f"{value[:12]!r}" if isinstance(value, bytes) else str(value),
)
def test_a_page_within_bounds_is_read_whole(body: bytes, selector: str, count: int) -> None:
    if count == 0:
        with pytest.raises(Invalid):
            parse_html(body)
    else:
        assert len(parse_html(body).css(selector)) == count


def test_depth_is_counted_over_the_edges_of_slices() -> None:
    comment = b"<!--" + b"x" * html.SLICE + b"-->"
    body = (b"<div>" + comment) * (MOST_DEPTH // 4)
    assert len(parse_html(body[:MOST_BYTES]).css("div")) > 100
    with pytest.raises(Invalid, match="deeper"):
        parse_html(b"<div>" * MOST_DEPTH + comment + b"<div>")


@given(st.binary(max_size=400), st.sampled_from([None, "utf-8", "shift_jis", "utf-16", "idna"]))
def test_no_bytes_raise_anything_but_invalid(body: bytes, said: str | None) -> None:
    try:
        parse_html(body, said).html  # noqa: B018 - drawing the page again touches every node
    except Invalid:
        return


@given(st.text(max_size=60))
def test_any_claim_of_an_encoding_names_one_that_can_be_read(claim: str) -> None:
    b"abc".decode(charset_of(b"abc", claim), "replace")


@pytest.fixture
async def reader() -> AsyncIterator[Reader]:
    made = Reader()
    yield made
    await made.close()


class Pulse:
    """Feels how long the event loop itself was busy, whatever else the machine does."""

    def __init__(self) -> None:
        self._beats: list[float] = []
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._beating is not None:
            self._beating.cancel()

    async def _beat(self) -> None:
        while True:
            self._beats.append(time.thread_time())
            await asyncio.sleep(0)

    @property
    def worst(self) -> float:
        """The longest time between two beats, in seconds of its own work."""
        return max((late - soon for soon, late in pairwise(self._beats)), default=0.0)


HOSTILE = {
    "nested": b"<div>" * 200_000,
    "attributes": b"<a " + b"".join(b"a%d=1 " % n for n in range(400_000)) + b">",
    "attribute": b"<li title='" + b"x" * (7 * MIB) + b"'>",
    "formatting": b"".join(b"<b a=%d>" % n for n in range(400)) + b"<div>" * 90 + b"</b>" * 5_000,
    "angles": b"<" * (7 * MIB),
    "comments": b"<!--" * (MIB + 1),
    "junk": bytes(range(256)) * 4096,
    "nul": b"\x00" * MIB + b"<li>",
    "surrogates": b"\xed\xa0\x80" * MIB + b"<li>",
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_page_neither_stalls_nor_crashes(name: str, reader: Reader) -> None:
    await reader.read(count_cells, b"<li>")
    async with Pulse() as pulse:
        found: int | str
        try:
            found = await reader.read(count_cells, HOSTILE[name])
        except Invalid as error:
            found = str(error)
    assert pulse.worst < 0.1
    assert found in {0, 1} or "page" in str(found)
    assert await reader.read(count_cells, b"<li><li>") == 2


async def test_what_a_parser_raises_comes_back(reader: Reader) -> None:
    with pytest.raises(BadInput, match="not so") as refused:
        await reader.read(refuse, "not so")
    assert refused.value.code == "no"
    with pytest.raises(Invalid, match="larger") as large:
        await reader.read(count_cells, b"x" * (MOST_BYTES + 1))
    assert large.value.page == b"x" * html.SLICE


async def test_a_parser_with_a_bug_ends_its_process_and_not_ours(reader: Reader) -> None:
    with pytest.raises(Invalid, match="ended the process"):
        await reader.read(blunder)
    assert await reader.read(count_cells, b"<li>") == 1


async def test_a_reading_that_is_cancelled_leaves_the_next_one_unharmed(reader: Reader) -> None:
    for _ in range(3):
        reading = asyncio.create_task(reader.read(count_cells, HOSTILE["attributes"]))
        await asyncio.sleep(0)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        assert await reader.read(count_cells, b"<li><li><li>") == 3


async def test_pages_asked_for_at_once_are_read_one_after_another(reader: Reader) -> None:
    found = await asyncio.gather(
        *(reader.read(count_cells, b"<li>" * count) for count in range(20))
    )
    assert found == list(range(20))


@pytest.mark.parametrize("question", [b"\0\0\0", (100).to_bytes(8) + b"half"])
async def test_a_reading_process_whose_asker_died_leaves_without_a_word(question: bytes) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mimawari.net.reader", stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert await process.communicate(question) == (b"", b"")
    assert process.returncode == 0


async def test_an_answer_that_nobody_waits_for_is_dropped_without_a_word() -> None:
    deaf, mute = os.pipe()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "mimawari.net.reader", stdin=PIPE, stdout=mute, stderr=PIPE
    )
    os.close(mute)
    os.close(deaf)
    question = pickle.dumps((count_cells, (b"<li>",), {}))
    _, said = await process.communicate(len(question).to_bytes(8) + question)
    assert (process.returncode, said) == (0, b"")
