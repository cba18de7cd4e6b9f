"""yt-dlp, with its extractor for YouTube and no other, asked with as few calls as will do."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from yt_dlp import YoutubeDL
from yt_dlp.extractor.youtube import YoutubeIE as _UpstreamIE
from yt_dlp.globals import plugin_dirs

from mimawari.sites.youtube.answers import Answer, LiveStatus, Trouble
from mimawari.sites.youtube.fallback import Fallback
from mimawari.sites.youtube.heard import Heard, parse_heard

PLAYER = "visionos"
"""The player that is given live manifests without running scripts or proving what it is."""

SECOND_PLAYER = "web"
"""One that is also given videos made for children, which the other is told are unavailable."""

SOCKET_SECONDS = 10
MOST_LINES, MOST_LETTERS = 50, 2000
OPTIONS: Mapping[str, Any] = {
    "quiet": True,
    "no_warnings": True,
    "color": "never",
    "skip_download": True,
    "noplaylist": True,
    "ignore_no_formats_error": True,
    "cachedir": False,
    "socket_timeout": SOCKET_SECONDS,
    "retries": 0,
    "extractor_retries": 0,
    "js_runtimes": {},
    # The gate counts bytes by the connection, so that each reply has one of its own.
    "http_headers": {"Connection": "close"},
}
SKIPPED = {
    "player_skip": ["webpage", "configs", "js", "initial_data"],
    "skip": ["dash", "translated_subs"],
}

# Plugins would come with ways out of their own.
plugin_dirs.value = []


class YoutubeIE(_UpstreamIE):  # type: ignore[misc] # its options go by its name
    """The extractor, which also keeps what the players were told."""

    players: tuple[Any, ...] = ()

    def _extract_player_responses(self, *args: Any, **kwargs: Any) -> Any:
        found = super()._extract_player_responses(*args, **kwargs)
        self.players = tuple(found[0])
        return found


class _Lines:
    """Keeps warnings and errors, as far as there is room."""

    def __init__(self) -> None:
        self.kept: list[str] = []

    def debug(self, _line: str) -> None:
        """Leave out what is no warning."""

    def warning(self, line: str) -> None:
        """Keep a line."""
        if len(self.kept) < MOST_LINES:
            self.kept.append(str(line)[:MOST_LETTERS])

    error = warning


class YtDlp:
    """One yt-dlp for one thread; what it raises is a line like any other."""

    def __init__(
        self, proxy: str, options: Mapping[str, Any], streamlink_options: Mapping[str, Any]
    ) -> None:
        self._lines = _Lines()
        self._arguments: dict[str, list[str]] = dict(SKIPPED)
        self._fallback = Fallback({**streamlink_options, "http-proxy": proxy})
        ours = {"logger": self._lines, "extractor_args": {"youtube": self._arguments}}
        self._ydl = YoutubeDL({**OPTIONS, **ours, **options, "proxy": proxy}, auto_init=False)
        self._extractor = YoutubeIE()
        self._ydl.add_info_extractor(self._extractor)

    def resolve(self, url: str) -> Answer:
        """Return what is known of the video at a watch address."""
        answer = parse_heard(self._ask(url, PLAYER))
        if answer.trouble is Trouble.UNAVAILABLE:
            answer = parse_heard(self._ask(url, SECOND_PLAYER))
        if answer.live_status is LiveStatus.LIVE and answer.manifest_url is None:
            return replace(answer, manifest_url=self._fallback.find_manifest(url))
        return answer

    def find(self, url: str) -> str | None:
        """Return where the manifest of any live stream is, as streamlink finds it."""
        return self._fallback.find_manifest(url)

    def close(self) -> None:
        """Close its connections."""
        self._ydl.close()
        self._fallback.close()

    def _ask(self, url: str, player: str) -> Heard:
        self._arguments["player_client"] = [player]
        self._lines.kept, self._extractor.players = [], ()
        found = None
        try:
            found = self._ydl.extract_info(url, download=False, ie_key="Youtube", process=False)
        except Exception as error:  # noqa: BLE001 - a reply may make it stumble over anything
            self._lines.error(f"{type(error).__name__}: {error}")
        info = found if isinstance(found, dict) else {}
        return Heard(info=info, players=self._extractor.players, lines=self._lines.kept)
