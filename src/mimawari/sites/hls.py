"""Fetches playlists and segments of HLS, each whole, bounded, and with its status told."""

from datetime import timedelta
from http import HTTPStatus

from mimawari.errors import Transient
from mimawari.media.playlist import MOST_BYTES, Master, Piece, Playlist, parse_playlist
from mimawari.net.page import Files, Page, Site

LIST = Site(name="hls", most_bytes=MOST_BYTES, deadline_for=timedelta(seconds=10))
PIECE = Site(name="hls", most_bytes=32 * 1024 * 1024, deadline_for=timedelta(seconds=20))
OVER = frozenset({HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE})
"""What is answered under an address that is good no more."""


class Refused(Transient):
    """An address was answered with something else than what it should be."""

    def __init__(self, what: str, status: int) -> None:
        super().__init__(f"the {what} was answered with {status}")
        self.status = status

    @property
    def is_over(self) -> bool:
        """Whether the address is good no more, and another may be."""
        return self.status in OVER


async def fetch_playlist(http: Files, url: str) -> Playlist | Master:
    """Fetch a playlist; what is none is refused."""
    page = await http.take(LIST, url)
    if page.status != HTTPStatus.OK:
        raise Refused("playlist", page.status)
    # Where it was led to counts for the addresses in it.
    return await http.look(parse_playlist, page.body, page.url)


async def fetch_piece(http: Files, piece: Piece) -> bytes:
    """Fetch a segment or its header, or a part of a file that is one."""
    headers = {"Accept-Encoding": "identity"}
    if piece.range is None:
        return _body(await http.take(PIECE, piece.url, headers=headers))
    start, end = piece.range.start, piece.range.start + piece.range.size
    headers["Range"] = f"bytes={start}-{end - 1}"
    page = await http.take(PIECE, piece.url, headers=headers)
    if page.status == HTTPStatus.PARTIAL_CONTENT:
        return page.body
    # Who does not know of parts answers with the whole.
    return _body(page)[start:end]


def _body(page: Page) -> bytes:
    if page.status != HTTPStatus.OK:
        raise Refused("segment", page.status)
    return page.body
