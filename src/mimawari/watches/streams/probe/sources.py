"""What can be looked at once: a video, a playlist or a segment of the web, or a local file."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from mimawari import show
from mimawari.edges.system import System
from mimawari.errors import BadInput, Gone, Invalid, JobError, Transient, Wait
from mimawari.kernel.context import Context
from mimawari.media.findings import Findings
from mimawari.media.playlist import (
    Master,
    NotPlaylist,
    Piece,
    Playlist,
    Segment,
    choose_variant,
    parse_playlist,
)
from mimawari.media.segment import analyse
from mimawari.net.http import Fetcher
from mimawari.net.reader import Reader
from mimawari.net.ways import open_ways
from mimawari.sites import hls
from mimawari.sites.youtube import Answer, LiveStatus, Trouble, parse_video_id
from mimawari.watches.streams.outside import CHECK, Web
from mimawari.watches.streams.probe.parts import GIVE, See, Wanted, choose, look_into, look_through
from mimawari.watches.streams.probe.timeline import Part
from mimawari.watches.streams.urls import parse_stream

CALLER = "cli"
CHUNK = 1024 * 1024
BRIEF = timedelta(seconds=5)
"""Whoever sits before a terminal waits so long for leave to ask, and is told of a longer wait."""
PAGES = ("youtube", "twitch", "niconico")
HERE = "http://beside.invalid/"
"""Stands for the folder of a playlist that is a file."""
_START = b"#EXTM3U"
_AGAIN = "check the address, and whether this machine reaches it"
_TROUBLES = {
    Trouble.MEMBERS_ONLY: "only members of its channel may watch it; nothing is seen without one",
    Trouble.AGE_RESTRICTED: "it is age-restricted; nothing is seen without an account",
    Trouble.REGION: "it is not shown in this country; a proxy elsewhere may (MIMAWARI_PROXIES)",
    Trouble.BOT_CHALLENGE: "YouTube takes us for a robot; wait for an hour, or use a proxy",
    Trouble.RATE_LIMITED: "YouTube wants fewer questions; wait for an hour, or use a proxy",
    Trouble.NO_FORMAT: "it has no form that can be read; it may be protected",
    Trouble.NETWORK: f"nobody answered; {_AGAIN}",
    Trouble.UNKNOWN: "nothing is known of it; try again in a minute",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Something that is looked into: what it is, and its pieces."""

    kind: str
    parts: AsyncGenerator[Part, None]
    title: str | None = None
    begins_at: datetime | None = None
    """When its first moment was made, where that is told."""
    total_seconds: float | None = None


@asynccontextmanager
async def open_source(opened: System, target: str, wanted: Wanted) -> AsyncIterator[Source]:
    """Find what is named, on the web by its scheme and else as a file."""
    if target.lower().startswith(("http://", "https://")):
        async with _open_web(opened) as (context, web):
            yield await _Online(opened, context, web, wanted).find(target)
        return
    reader = Reader()
    try:
        yield _find_file(Path(target), wanted, reader)
    finally:
        await reader.close()


@asynccontextmanager
async def _open_web(opened: System) -> AsyncIterator[tuple[Context, Web]]:
    """Take leave for one look, as a monitor's check does."""
    async with open_ways(opened.settings, opened.store, opened.clock) as ways:
        context = Context(opened.store, opened.clock, opened.watches, partial(Fetcher, ways))
        try:
            await context.limit(CHECK, caller=CALLER)
            yield context, Web(context, CALLER)
        finally:
            await context.settle()


class _Online:
    """Finds something on the web."""

    def __init__(self, opened: System, context: Context, web: Web, wanted: Wanted) -> None:
        self._opened = opened
        self._context = context
        self._web = web
        self._wanted = wanted

    async def find(self, url: str) -> Source:
        """Find what an address names."""
        stream_url = _parse_page(url)
        if stream_url is not None:
            answer = await self._ask(stream_url)
            return await self._open_list(str(answer.manifest_url), "live stream", answer.title)
        if urlsplit(url).path.endswith(".m3u8"):
            return await self._open_list(url, "playlist", None)
        try:
            body = await hls.fetch_piece(self._context.http, Piece(url=url))
        except JobError as error:
            raise _advised(error) from error
        if body.lstrip().startswith(_START):
            return await self._open_list(url, "playlist", None)
        parts = look_into([body], self._wanted, self._context.http.look)
        return Source(kind="segment", parts=parts)

    async def _ask(self, stream_url: str) -> Answer:
        clock, zone = self._opened.clock, self._opened.settings.zone
        answer = await self._web.ask(stream_url)
        if isinstance(answer, Wait) and answer.until <= clock.now() + BRIEF:
            await clock.sleep(answer.until - clock.now())
            answer = await self._web.ask(stream_url)
        now = clock.now()
        if isinstance(answer, Wait):
            at = show.when(answer.until, now, zone)
            raise Transient(f"nobody may ask how it stands before {at}: {answer.reason}")
        if answer.trouble is Trouble.UPCOMING or answer.live_status is LiveStatus.UPCOMING:
            at = show.when(answer.release_at, now, zone) if answer.release_at else "a later time"
            raise Transient(
                f"it has not begun; it is announced for {at}; `mimawari streams add` waits for it"
            )
        if answer.trouble is not None:
            raise _refused(answer.trouble, answer.words)
        if answer.live_status is not LiveStatus.LIVE:
            how = f"it is not live ({answer.live_status})"
            raise Gone(f"{how}; give one that is, or a file of what it was")
        if answer.manifest_url is None:
            raise Transient("it is live, but its playlist is not there yet; try again in a minute")
        return answer

    async def _open_list(self, url: str, kind: str, title: str | None) -> Source:
        try:
            found = await self._web.fetch_playlist(url)
            if isinstance(found, Master):
                found = await self._web.fetch_playlist(
                    choose_variant(found, self._wanted.quality).url
                )
        except JobError as error:
            raise _advised(error) from error
        return _listed(found, self._wanted, self._see, kind, title)

    async def _see(self, segment: Segment) -> Findings:
        return await self._web.look(segment.piece, segment.header, self._wanted.look)


def _parse_page(url: str) -> str | None:
    """Return the address that a stream's page is known under, if it is one."""
    host = (urlsplit(url).hostname or "").removesuffix(".")
    if host in {"youtube.com", "youtu.be"} or host.endswith((".youtube.com", ".youtu.be")):
        # Here only one video is anything that can be seen, and what is wrong is told.
        parse_video_id(url)
    try:
        return parse_stream(url, PAGES)
    except BadInput:
        return None


def _refused(trouble: Trouble, words: str | None) -> JobError:
    said = f" ({show.plain(words, most=200)})" if words else ""
    if trouble.is_for_good:
        return Gone(f"the video is gone: {trouble}{said}; check the address")
    return Transient(f"{_TROUBLES[trouble]}{said}")


def _advised(error: JobError) -> JobError:
    if isinstance(error, NotPlaylist):
        return Invalid(f"{error}; {GIVE}")
    if isinstance(error, hls.Refused) and error.is_over:
        return Transient(f"{error}; the address may have run out: ask for a new one")
    return Transient(f"{error}; {_AGAIN}")


def _listed(
    found: Playlist | Master, wanted: Wanted, see: See, kind: str, title: str | None
) -> Source:
    if isinstance(found, Master):
        raise Invalid("the playlist names lists that name lists; give one of those")
    chosen = choose(found, wanted.seconds)
    if not chosen:
        raise Transient("the playlist names no segments yet; try again in a minute")
    return Source(
        kind=kind,
        title=title,
        parts=look_through(found, wanted, see),
        begins_at=chosen[0].at,
        total_seconds=sum(one.seconds for one in chosen),
    )


def _find_file(path: Path, wanted: Wanted, reader: Reader) -> Source:
    if not path.is_file():
        raise BadInput(f"there is no file {show.plain(str(path), most=200)!r}; {GIVE}")
    with path.open("rb") as opened:
        begin = opened.read(CHUNK)
    is_list = begin.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_START)
    if is_list or path.suffix.lower() == ".m3u8":
        beside = _Beside(path, wanted, reader)
        return _listed(beside.parse(), wanted, beside.see, "playlist", None)
    return Source(kind="file", parts=look_into(_read(path), wanted, reader.read))


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as opened:
        while chunk := opened.read(CHUNK):
            yield chunk


class _Beside:
    """A playlist that is a file, with its segments below the same folder."""

    def __init__(self, path: Path, wanted: Wanted, reader: Reader) -> None:
        self._path = path
        self._folder = path.parent.resolve()
        self._wanted = wanted
        self._reader = reader

    def parse(self) -> Playlist | Master:
        """Read the list of the quality that is wanted."""
        found = parse_playlist(self._path.read_bytes(), f"{HERE}{self._path.name}")
        if isinstance(found, Master):
            url = choose_variant(found, self._wanted.quality).url
            found = parse_playlist(self._read(Piece(url=url)), url)
        return found

    async def see(self, segment: Segment) -> Findings:
        """Look into a segment."""
        header = self._read(segment.header) if segment.header else b""
        body = self._read(segment.piece)
        found: Findings = await self._reader.read(analyse, body, header, self._wanted.look)
        return found

    def _read(self, piece: Piece) -> bytes:
        if not piece.url.startswith(HERE):
            raise Invalid("the playlist names addresses of the web; give its own address instead")
        name = unquote(urlsplit(piece.url).path).lstrip("/")
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder) or not path.is_file():
            raise Invalid(f"there is no file {show.plain(name)!r} beside the playlist")
        with path.open("rb") as opened:
            opened.seek(piece.range.start if piece.range else 0)
            return opened.read(piece.range.size if piece.range else hls.PIECE.most_bytes)
