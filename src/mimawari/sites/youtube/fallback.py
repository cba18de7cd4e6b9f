"""streamlink, asked for a manifest and for nothing else: it never says whether a video is live."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mimawari.sites.youtube.heard import is_web

if TYPE_CHECKING:
    from streamlink.session.session import Streamlink

TIMEOUT_SECONDS = 10.0
OPTIONS: Mapping[str, Any] = {
    "http-timeout": TIMEOUT_SECONDS,
    # What the environment says of proxies would lead past the gate.
    "http-trust-env": False,
    "http-headers": {"Connection": "close"},
}


class Fallback:
    """One streamlink for one thread, loaded when it is first needed."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = {**OPTIONS, **options}
        self._session: Streamlink | None = None

    def find_manifest(self, url: str) -> str | None:
        """Return the address of a live video's manifest, or nothing."""
        try:
            streams = self._open().streams(url)
        except Exception:  # noqa: BLE001 - a reply may make it stumble over anything
            return None
        from streamlink.stream.hls.hls import HLSStream  # noqa: PLC0415 - heavy, hardly ever needed

        worst = streams.get("worst")
        if not isinstance(worst, HLSStream):
            return None
        master = worst.multivariant.uri if worst.multivariant else None
        return next(filter(is_web, (master, worst.url)), None)

    def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            self._session.http.close()

    def _open(self) -> "Streamlink":
        # It keeps each session that ever read an address, so that there is one for all.
        if self._session is None:
            from streamlink.session.session import Streamlink  # noqa: PLC0415 - the same

            self._session = Streamlink(self._options)
            # No reply may have it read files of this machine.
            self._session.http.adapters.pop("file://", None)
        return self._session
