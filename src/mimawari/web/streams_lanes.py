"""How a monitor went, drawn from what was told of it: its state, picture and sound over time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup

from mimawari.watches.streams.models import ACTIVE, PICTURE, SOUND, EventType, Heard, Sense
from mimawari.watches.streams.queries import Sending, View
from mimawari.watches.streams.sync import HEARD_FOR
from mimawari.web import draw
from mimawari.web.draw import Frame, Lane, Point, Series
from mimawari.web.visit import Visit

APART = timedelta(seconds=45)
"""What was measured further apart is not joined."""
BOTTOM = -80.0
WAITING, LATE, LIVE, OK, ERROR = "waiting", "late", "live", "ok", "error"


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time in one state."""

    start: datetime
    end: datetime
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lanes:
    """Lanes as they are drawn, and what their colours mean."""

    drawn: Markup
    keys: Markup


def draw_lanes(visit: Visit, view: View, told: Sequence[Sending]) -> Lanes:
    """Draw the lanes of a monitor from its events, oldest first."""
    end = view.ended_at or visit.system.clock.now()
    states = list_states(view, told, end)
    live = [span for span in states if span.state == LIVE]
    rows = {
        "state": states,
        "video": list_senses(view, told, end, PICTURE),
        "audio": list_senses(view, told, end, SOUND),
    }
    lanes = [
        Lane(
            label=visit.words.maybe("lane", name),
            spans=[
                (span.start, span.end, span.state, _say(visit, span))
                for span in (found if name == "state" else [*fill(found, live), *found])
            ],
        )
        for name, found in rows.items()
    ]
    frame = Frame(start=view.monitor.created_at, end=end, top=1.0)
    same_day = visit.when(frame.start, "%m-%d") == visit.when(end, "%m-%d")
    form = "%H:%M:%S" if same_day else "%m-%d %H:%M"
    title = visit.words("streams.lanes")
    seen = dict.fromkeys(state for lane in lanes for _, _, state, _ in lane.spans)
    return Lanes(
        drawn=draw.lanes(title, lanes, frame, lambda at: visit.when(at, form)),
        keys=draw.lane_keys({state: visit.words.maybe("monitor", state) for state in seen}),
    )


def draw_loudness(visit: Visit, view: View, heard: Sequence[Heard]) -> Markup | None:
    """Draw how loud it was, as far back as that is kept; nothing joins what lies apart."""
    if not heard:
        return None
    points: list[Point] = []
    for one in heard:
        if points and one.at - points[-1][0] > APART:
            points.append((points[-1][0], None))
        points.append((one.at, one.lufs))
    config = view.monitor.config
    series = [Series(label=visit.words("streams.loudness"), points=points, kind="trace")]
    if config.loudness_threshold_sec is not None:
        for name in ("loudness_min_lufs", "loudness_max_lufs"):
            label, level = visit.words.maybe("monitor_field", name), getattr(config, name)
            series.append(
                Series(label=label, points=[(heard[-1].at, level)], kind="level", colour=3)
            )
    end = max(view.ended_at or visit.system.clock.now(), heard[-1].at)
    start = max(view.monitor.created_at, min(end - HEARD_FOR, heard[0].at))
    frame = Frame(start=start, end=end, top=0, bottom=BOTTOM)
    title = visit.words("streams.loudness")
    return draw.chart(
        title,
        series,
        frame,
        lambda level: f"{level:.0f} LUFS",
        lambda at: visit.when(at, "%H:%M:%S"),
    )


def _say(visit: Visit, span: Span) -> str:
    return visit.words(
        "streams.span",
        what=visit.words.maybe("monitor", span.state),
        start=visit.when(span.start),
        end=visit.when(span.end),
    )


def list_states(view: View, told: Sequence[Sending], end: datetime) -> list[Span]:
    """List how the stream stood: awaited, late, live; nothing after its end."""
    found: list[Span] = []
    state: str | None = WAITING
    since = view.monitor.created_at
    for event in told:
        following = {
            EventType.STARTED: LIVE,
            EventType.DELAYED: LATE,
            EventType.ENDED: None,
        }
        if event.event_type not in following:
            continue
        if state is not None:
            found.append(Span(since, event.created_at, state))
        state, since = following[EventType(event.event_type)], event.created_at
    if state is not None:
        found.append(Span(since, end, state))
    return found


def list_senses(
    view: View, told: Sequence[Sending], end: datetime, senses: Sequence[Sense]
) -> list[Span]:
    """List the stretches in which something was wrong, each from its alert to its recovery."""
    found: list[Span] = []
    for sense in senses:
        found += _list_sense(told, end, sense)
    is_open = view.monitor.status in ACTIVE and view.video == ERROR
    errors = [event for event in told if event.event_type == EventType.SEGMENT_ERROR]
    for event in errors:
        # Nobody is told when a fault is over: but for one that lasts, it is drawn up to its alert.
        lasts = is_open and event is errors[-1]
        start = min(_moment(event, "started_at"), event.created_at)
        found.append(Span(start, end if lasts else event.created_at, ERROR))
    return sorted(found, key=lambda span: span.start)


def _list_sense(told: Sequence[Sending], end: datetime, sense: Sense) -> Iterator[Span]:
    alert = EventType.of(sense, is_over=False)
    over = EventType.of(sense, is_over=True)
    since: datetime | None = None
    for event in told:
        if event.event_type == alert and since is None:
            since = _moment(event, "started_at")
        elif event.event_type == over:
            start = since or _moment(event, "started_at")
            yield Span(start, max(_moment(event, "recovered_at"), start), str(sense))
            since = None
    if since is not None:
        yield Span(since, end, str(sense))


def fill(found: Sequence[Span], within: Sequence[Span]) -> list[Span]:
    """List what lies between the stretches in which something was wrong, while it was live."""
    filled = []
    for whole in within:
        at = whole.start
        for span in found:
            if at < span.start < whole.end:
                filled.append(Span(at, span.start, OK))
            at = max(at, span.end)
        if at < whole.end:
            filled.append(Span(at, whole.end, OK))
    return filled


def _moment(event: Sending, name: str) -> datetime:
    """Return a time that an event tells of; where it tells none, when it was told."""
    facts: Any = event.payload.get("data") if isinstance(event.payload, dict) else None
    text = facts.get(name) if isinstance(facts, dict) else None
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return event.created_at
    return at if at.tzinfo else event.created_at
