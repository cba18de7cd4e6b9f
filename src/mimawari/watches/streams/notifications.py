"""What people may be told of monitors, beside the webhooks of whoever asked for them."""

from mimawari.kernel.ports import Tx
from mimawari.kernel.telling import Facts, Telling, tell
from mimawari.watches.streams.models import EventType, Monitor

_NAMES = {
    EventType.STARTED: ("配信開始", "stream started"),
    EventType.ENDED: ("配信終了", "stream ended"),
    EventType.DELAYED: ("開始の遅れ", "start delayed"),
    EventType.BLACKOUT: ("映像が真っ暗", "black picture"),
    EventType.BLACKOUT_RECOVERED: ("映像の回復", "picture is back"),
    EventType.SILENCE: ("無音", "silence"),
    EventType.SILENCE_RECOVERED: ("音声の回復", "sound is back"),
    EventType.FREEZE: ("映像の静止", "still picture"),
    EventType.FREEZE_RECOVERED: ("静止からの回復", "picture moves again"),
    EventType.BARS: ("カラーバー", "colour bars"),
    EventType.BARS_RECOVERED: ("カラーバーの終わり", "colour bars over"),
    EventType.LOUDNESS: ("音量の異常", "too loud or too quiet"),
    EventType.LOUDNESS_RECOVERED: ("音量の回復", "loudness is right again"),
    EventType.SEGMENT_ERROR: ("映像データの取得失敗", "segments cannot be read"),
    EventType.ERROR: ("監視の異常終了", "monitor ended with an error"),
}


def kind_of(what: EventType) -> str:
    """Name the kind that people hear of an event by."""
    return f"streams.{what.partition('.')[2]}"


def tell_people(tx: Tx, monitor: Monitor, what: EventType) -> None:
    """Tell people an event; a receiver that hangs holds up its own webhooks alone."""
    title = str(monitor.metadata.get("title") or monitor.stream_url)
    facts = {"monitor_id": monitor.id, "title": title, "stream_url": monitor.stream_url}
    tell(tx, f"streams:{monitor.id}:told", kind_of(what), facts)


def _make(what: EventType, ja: str, en: str) -> Telling:
    def line(facts: Facts, language: str) -> str:
        return f"{facts['title']}: {ja if language == 'ja' else en}"

    def path(facts: Facts) -> str:
        return f"/streams/{facts['monitor_id']}"

    return Telling(kind=kind_of(what), ja=ja, en=en, line=line, path=path)


TELLINGS = tuple(_make(what, ja, en) for what, (ja, en) in _NAMES.items())
