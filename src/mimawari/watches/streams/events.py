"""Writes what whoever asked for a monitor is told, as it is sent."""

from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

from mimawari.watches.streams.models import Monitor, Notice


def write_moment(at: datetime, zone: tzinfo) -> str:
    """Write a moment to the second, with its zone."""
    return at.astimezone(zone).isoformat(timespec="seconds")


def write_exactly(at: datetime, zone: tzinfo) -> str:
    """Write a moment to the thousandth of a second."""
    return at.astimezone(zone).isoformat(timespec="milliseconds")


def write_payload(monitor: Monitor, notice: Notice, zone: tzinfo) -> dict[str, Any]:
    """Write the whole of what is sent of a notice."""
    return {
        "event_type": str(notice.type),
        "monitor_id": monitor.id,
        "stream_url": monitor.stream_url,
        "timestamp": write_moment(notice.at, zone),
        "data": write_facts(notice.data, zone),
        "metadata": dict(monitor.metadata),
    }


def write_facts(facts: Mapping[str, Any], zone: tzinfo) -> dict[str, Any]:
    """Write the facts of a notice as JSON has them."""
    return {name: _plain(value, zone) for name, value in facts.items()}


def _plain(value: Any, zone: tzinfo) -> Any:
    match value:
        case datetime():
            return write_exactly(value, zone)
        case Mapping():
            return write_facts(value, zone)
        case _:
            return value
