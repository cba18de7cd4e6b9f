"""Simulated live streams: a resolver that says how they stand, and the origin that serves them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from html import escape
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from mimawari.errors import BadInput
from mimawari.kernel.ports import Clock
from mimawari.sim.chance import chance_of
from mimawari.sim.sites.youtube.catalogue import Catalogue
from mimawari.sim.sites.youtube.pictures import LADDER
from mimawari.sim.sites.youtube.playlists import (
    HEADER,
    SUFFIXES,
    find_segment,
    write_list,
    write_master,
)
from mimawari.sim.sites.youtube.programme import Programme
from mimawari.sim.sites.youtube.resolver import UNKNOWN, refuse, resolve
from mimawari.sim.sites.youtube.segments import make_header, make_segment
from mimawari.sim.sites.youtube.truth import tell_programme
from mimawari.text import one_line

RESOLVER = "/resolve"
ORIGIN = "/live/"
VALID_FOR = timedelta(hours=6)
"""A manifest's address works for so long."""
NOISE_BYTES = 20_000
LIST_TYPE = "application/vnd.apple.mpegurl"
_PATH = re.compile(
    r"/live/(?P<video_id>[A-Za-z0-9_-]{1,64})/"
    r"(?:(?P<master>master)\.m3u8|(?P<list>[0-9]{1,4})p\.m3u8"
    r"|(?P<height>[0-9]{1,4})p/(?P<file>(?P<sequence>[0-9]{1,12})\.(?:ts|m4s)|init\.mp4))"
)
_TYPES = {"ts": "video/mp2t", "fmp4": "video/mp4"}
_PAGE = "<!DOCTYPE html><html><head><title>Error</title></head><body><p>{}</p></body></html>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What of a programme is asked for, and when."""

    programme: Programme
    query: str
    on_clock: float


class Live:
    """Streams on the world's clock; those of the catalogue, unless left out, and those put in."""

    name = "live"

    def __init__(self, clock: Clock, seed: int, *, has_catalogue: bool = True) -> None:
        self._clock = clock
        self._seed = seed
        self._catalogue = Catalogue(seed) if has_catalogue else None
        self._put: dict[str, Programme] = {}

    def put(self, programme: Programme) -> None:
        """Put a programme in, in place of any with the same id."""
        self._put[programme.video_id] = programme

    @property
    def programmes(self) -> dict[str, Programme]:
        """All programmes there are now, by their ids."""
        listed = self._catalogue.list(self._clock.now()) if self._catalogue else ()
        return {one.video_id: one for one in listed} | self._put

    def owns(self, path: str) -> bool:
        """Say whether a path is this site's."""
        return path == RESOLVER or path.startswith(ORIGIN)

    async def answer(self, request: Request) -> Response:
        """Answer one request as the real sites would."""
        if request.method not in {"GET", "HEAD"}:
            return PlainTextResponse("Method Not Allowed", 405, {"allow": "GET, HEAD"})
        path = request.url.path
        if path == RESOLVER:
            return JSONResponse(self._resolve(request))
        if path == ORIGIN:
            return self._show()
        found = _PATH.fullmatch(path)
        programme = self._find(found["video_id"]) if found else None
        if found is None or programme is None:
            return _refuse(404)
        on_clock = (self._clock.now() - programme.starts_at).total_seconds()
        wanted = Wanted(programme=programme, query=request.url.query, on_clock=on_clock)
        return self._refuse_early(wanted, request.query_params) or self._serve(wanted, found)

    def truth(self, query: Mapping[str, str]) -> Any:
        """Tell all about every programme, or about the one that is named by `v`."""
        now = self._clock.now()
        wanted = query.get("v")
        told = [
            tell_programme(one, now)
            for one in self.programmes.values()
            if wanted in {None, one.video_id}
        ]
        return {"now": now.isoformat(), "programmes": told}

    def refusal(self) -> Response:
        """Make the page this site shows when it blocks somebody."""
        return HTMLResponse(_PAGE.format("Your client does not have permission."), 403)

    def _find(self, video_id: str) -> Programme | None:
        return self._put.get(video_id) or self.programmes.get(video_id)

    def _resolve(self, request: Request) -> dict[str, Any]:
        video_id = one_line(request.query_params.get("v", ""), most=64)
        if not video_id:
            raise BadInput("v is the id of a video")
        programme = self._find(video_id)
        if programme is None:
            return refuse(video_id, UNKNOWN)
        token = self._make_token(video_id)
        url = f"{request.url.scheme}://{request.url.netloc}{ORIGIN}{video_id}/master.m3u8?{token}"
        return resolve(programme, self._clock.now(), url)

    def _make_token(self, video_id: str) -> str:
        issued = int(self._clock.now().timestamp() * 1000)
        expire = issued // 1000 + int(VALID_FOR.total_seconds())
        named = {"expire": expire, "issued": issued, "sig": self._sign(video_id, expire, issued)}
        return urlencode(named)

    def _sign(self, *words: object) -> str:
        return sha256("/".join(map(str, ("live", self._seed, *words))).encode()).hexdigest()[:32]

    def _refuse_early(self, wanted: Wanted, query: Mapping[str, str]) -> Response | None:
        """Refuse what is not there, and who has no good address."""
        programme, on_clock = wanted.programme, wanted.on_clock
        if on_clock < 0 or (programme.is_over(on_clock) and programme.ending == "vanish"):
            return _refuse(404)
        expire, issued = query.get("expire", ""), query.get("issued", "")
        if query.get("sig") != self._sign(programme.video_id, expire, issued):
            return _refuse(403)
        if self._clock.now().timestamp() > int(expire):
            return _refuse(403)
        upset = programme.find_upset(on_clock, "forbidden")
        forbidden_at = programme.at(upset.start) if upset else None
        if forbidden_at and int(issued) < int(forbidden_at.timestamp() * 1000):
            return _refuse(403)
        return None

    def _serve(self, wanted: Wanted, found: re.Match[str]) -> Response:
        programme, on_clock = wanted.programme, wanted.on_clock
        height = int(found["list"] or found["height"] or 144)
        if height not in LADDER:
            return _refuse(404)
        if found["file"]:
            return self._serve_file(wanted, found, height)
        if programme.find_upset(on_clock, "not_playlist"):
            return HTMLResponse(_PAGE.format("We are sorry. Please try again."))
        if found["master"]:
            chance = chance_of("live", self._seed, programme.video_id, "ladder")
            return Response(write_master(wanted.query, chance), media_type=LIST_TYPE)
        stale = programme.find_upset(on_clock, "stale")
        seen = write_list(programme, height, wanted.query, stale.start if stale else on_clock)
        return Response(seen, media_type=LIST_TYPE)

    def _serve_file(self, wanted: Wanted, found: re.Match[str], height: int) -> Response:
        programme = wanted.programme
        media_type = _TYPES[programme.container]
        if found["file"] == HEADER:
            is_fmp4 = programme.container == "fmp4"
            return Response(make_header(height), media_type=media_type) if is_fmp4 else _refuse(404)
        number = find_segment(programme, wanted.on_clock, int(found["sequence"]))
        is_named = found["file"].endswith(f".{SUFFIXES[programme.container]}")
        if number is None or not is_named:
            return _refuse(404)
        if programme.is_upset(number, "gap") or programme.is_upset(number, "missing"):
            return _refuse(404)
        if programme.is_upset(number, "encrypted"):
            return Response(self._make_noise(programme, number), media_type=media_type)
        if programme.is_upset(number, "garbage"):
            body = self._make_noise(programme, number) if number % 2 else _PAGE.format("").encode()
            return Response(body, media_type=media_type)
        return Response(make_segment(programme, number, height), media_type=media_type)

    def _make_noise(self, programme: Programme, number: int) -> bytes:
        # By its first byte it is taken for no container.
        chance = chance_of("live", self._seed, programme.video_id, number)
        return b"\0" + chance.randbytes(NOISE_BYTES)

    def _show(self) -> Response:
        rows = "".join(
            f'<li><a href="{RESOLVER}?v={escape(one.video_id)}">{escape(one.title)}</a></li>'
            for one in self.programmes.values()
        )
        return HTMLResponse(
            '<!DOCTYPE html><html lang="ja"><head><meta charset="utf-8"><title>Live</title></head>'
            f"<body><h1>Live</h1><ul>{rows}</ul></body></html>"
        )


def _refuse(code: int) -> Response:
    return PlainTextResponse({403: "Forbidden", 404: "Not Found"}[code], code)
