"""The form that adds a monitor: its fields, and how what was typed is read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any, get_args

from mimawari.edges.request_fields import write_moment
from mimawari.errors import BadInput
from mimawari.watches.streams.models import Quality
from mimawari.watches.streams.schemas.requests import ConfigIn, MonitorIn
from mimawari.web.forms import check
from mimawari.web.words import Words

WINDOW = ("maintenance_from", "maintenance_to")
_WHOLE, _PART, _MOMENT, _CHECK, _CHOICE = "whole", "part", "moment", "check", "choice"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the form, and how it is filled in."""

    name: str
    kind: str
    least: float | None = None
    most: float | None = None

    @property
    def default(self) -> Any:
        """What is there before anybody has typed anything."""
        known = ConfigIn.model_fields.get(self.name)
        return None if known is None else known.default


DAY = 86_400
GROUPS: Mapping[str, tuple[Field, ...]] = {
    "thresholds": (
        Field("check_interval_sec", _WHOLE, 1, 300),
        Field("blackout_threshold_sec", _WHOLE, 1, DAY),
        Field("silence_threshold_sec", _WHOLE, 1, DAY),
        Field("silence_db_threshold", _PART, -120, 0),
    ),
    "start": (
        Field("scheduled_start_time", _MOMENT),
        Field("start_delay_tolerance_sec", _WHOLE, 0, DAY),
    ),
    "extras": (
        Field("quality", _CHOICE),
        Field("freeze_threshold_sec", _WHOLE, 1, DAY),
        Field("bars_threshold_sec", _WHOLE, 1, DAY),
        Field("loudness_threshold_sec", _WHOLE, 1, DAY),
        Field("loudness_min_lufs", _PART, -70, 0),
        Field("loudness_max_lufs", _PART, -70, 0),
        *(Field(name, _MOMENT) for name in WINDOW),
        Field("missing_audio_is_silence", _CHECK),
        Field("snapshot", _CHECK),
    ),
}
_ASKED = ("stream_url", "callback_url", "metadata")
QUALITIES = get_args(Quality)


def fill(typed: Mapping[str, str] | None) -> dict[str, Any]:
    """Tell what stands in each field: what was typed, or what is usual."""
    fields = [one for group in GROUPS.values() for one in group]
    if typed is None:
        usual = {one.name: "" if one.default is None else one.default for one in fields}
        return dict.fromkeys(_ASKED, "") | usual
    return {name: typed.get(name, "") for name in _ASKED} | {
        one.name: one.name in typed if one.kind == _CHECK else typed.get(one.name, "")
        for one in fields
    }


def parse_monitor(typed: Mapping[str, str], zone: tzinfo, words: Words) -> MonitorIn:
    """Read what was typed, or say of each field what is wrong with it."""
    config: dict[str, Any] = {}
    for one in (field for group in GROUPS.values() for field in group):
        text = typed.get(one.name, "").strip()
        if one.kind == _CHECK:
            config[one.name] = one.name in typed
        elif text:
            config[one.name] = _read(one, text, zone, words)
    start, end = (config.pop(name, None) for name in WINDOW)
    if start or end:
        config["maintenance"] = [{"from": start, "to": end}]
    given = {
        "stream_url": typed.get("stream_url", "").strip(),
        "callback_url": typed.get("callback_url", "").strip(),
        "config": config,
        "metadata": _metadata(typed.get("metadata", ""), words),
    }
    return check(MonitorIn, given, words, "monitor_field")


def _read(field: Field, text: str, zone: tzinfo, words: Words) -> Any:
    """Read one field; what is no number is left as it is, and refused with the others."""
    try:
        match field.kind:
            case "whole":
                return int(text) if text.isascii() and text.isdecimal() else text
            case "part":
                return float(text)
            case "moment":
                at = datetime.fromisoformat(text)
                return write_moment(at if at.tzinfo else at.replace(tzinfo=zone))
    except (ValueError, OverflowError):
        label = words.maybe("monitor_field", field.name)
        said = words("streams.no_time" if field.kind == _MOMENT else "wrong.float_type")
        raise BadInput(f"{label}: {said}") from None
    return text


def _metadata(text: str, words: Words) -> Any:
    if not text.strip():
        return {}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(words("streams.no_json")) from None
