"""Compares what was told of streams with what every published segment of them shows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mimawari.app.judges.streams_plan import Script
from mimawari.app.judges.virtual_run import pick_examples
from mimawari.sim.sites.youtube.observed import BLACK, Incident, list_incidents, silent_kinds
from mimawari.sim.sites.youtube.programme import FPS, Programme
from mimawari.watches.streams.models import EventType, Sense

SENSES = (Sense.BLACKOUT, Sense.SILENCE)
WITHIN = {Sense.BLACKOUT: 1 / FPS, Sense.SILENCE: 0.1}
"""How exact times are: a frame; and of a sound, which begins anew with each segment, a little."""
HEARD_FRAMES = {Sense.BLACKOUT: 0, Sense.SILENCE: 2}
"""So many more frames it takes to be sure that something is good again."""
NEAR = timedelta(seconds=30)
"""What is told of an incident begins not further from it than this."""
WRITTEN = 0.002
"""Times are written to the thousandth of a second."""
ALERTS = {EventType.of(sense, is_over=False): sense for sense in SENSES}
ENDS = {EventType.of(sense, is_over=True): sense for sense in SENSES}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One webhook as the receiver of the world has it."""

    at: datetime
    stream: str
    event_id: str
    is_verified: bool
    body: Mapping[str, Any]

    @property
    def type(self) -> str:
        """What it tells."""
        return str(self.body.get("event_type"))

    def moment(self, name: str) -> datetime:
        """Read a time of what it tells."""
        return datetime.fromisoformat(self.body["data"][name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The programmes, and what the world says it was told and asked."""

    seed: int
    scripts: Sequence[Script]
    told: Sequence[Told]
    requests: int
    segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not as the truth: what, of which stream and moment, and both sides."""

    what: str
    stream: str
    about: str
    ours: str | None
    truth: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """How the watch did."""

    ok: bool
    seed: int
    streams: int
    requests: int
    segments: int
    """Segments that were looked into."""
    incidents: int
    """Runs that are black or silent, however long."""
    upsets: dict[str, int]
    """What went wrong meanwhile, and how often."""
    expected: int
    """Incidents of which at least the threshold is to be seen; each is told once, and its end."""
    alerted: int
    recovered: int
    missing: int
    unrecovered: int
    false: int
    """What was told of something that was not so, or not for as long as its threshold."""
    doubled: int
    wrong_start: int
    most_start_error: dict[str, float]
    """In seconds, for lists with dates and for those without."""
    start_within: dict[str, float]
    """How far off it may be; without dates a segment more."""
    wrong_duration: int
    most_duration_error: dict[str, float]
    duration_within: dict[str, float]
    late: int
    """What was told later than one check interval after the segment was there that decided it.

    Where something kept everybody from the segments, it counts from when they were to be had.
    """
    held: int
    """Alerts and ends that something kept back."""
    most_delay: float
    """The longest time in seconds from a threshold or an end to what is told of it, of others."""
    most_delay_share: float
    """The largest share that it took of one check interval and one segment."""
    unverified: int
    """Webhooks that the receiver refused, or that came again though it had taken them."""
    disordered: int
    wrong_others: int
    """Streams of which the start, the end or the errors told are not those that were."""
    examples: list[Difference]


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """By when something is told at the latest."""

    by_at: datetime
    counts_from: datetime | None
    """From when on a delay counts; None where something keeps it back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """An incident, and what is to be told of it if anything."""

    sense: Sense
    incident: Incident
    start_at: datetime
    seconds: float
    due: Due | None
    over: Due | None


@dataclass(slots=True)
class Findings:
    """What was found by comparing, of all streams."""

    differing: list[Difference] = field(default_factory=list)
    start_errors: dict[str, list[float]] = field(default_factory=dict)
    duration_errors: dict[str, list[float]] = field(default_factory=dict)
    delays: list[tuple[float, float]] = field(default_factory=list)
    """In seconds, and as a share of what is allowed."""
    incidents: int = 0
    expected: int = 0
    alerted: int = 0
    recovered: int = 0
    held: int = 0


def judge(evidence: Evidence) -> Report:
    """Compare all that was told with what every incident demands."""
    found = Findings()
    ids = Counter(one.event_id for one in evidence.told)
    for one in evidence.told:
        if not one.is_verified or ids[one.event_id] > 1:
            truth = "signed, fresh and once"
            _differ(found, "unverified", one.stream, one.type, f"{ids[one.event_id]} times", truth)
    for script in evidence.scripts:
        name = script.programme.video_id
        told = [one for one in evidence.told if one.stream == name]
        _Judging(script, told, found).go_through()
    return _report(evidence, found)


def _differ(found: Findings, what: str, stream: str, about: str, *sides: object) -> None:
    ours, truth = (None if side is None else str(side) for side in sides)
    found.differing.append(
        Difference(what=what, stream=stream, about=about, ours=ours, truth=truth)
    )


def _report(evidence: Evidence, found: Findings) -> Report:
    counts = Counter(one.what for one in found.differing)
    scripts = evidence.scripts
    return Report(
        ok=bool(found.expected) and not found.differing,
        seed=evidence.seed,
        streams=len(scripts),
        requests=evidence.requests,
        segments=evidence.segments,
        incidents=found.incidents,
        upsets=dict(Counter(one.what for each in scripts for one in each.programme.upsets)),
        expected=found.expected,
        alerted=found.alerted,
        recovered=found.recovered,
        missing=counts["missing"],
        unrecovered=counts["unrecovered"],
        false=counts["false"],
        doubled=counts["doubled"],
        wrong_start=counts["start"],
        most_start_error=_most(found.start_errors),
        start_within={str(sense): within for sense, within in WITHIN.items()},
        wrong_duration=counts["duration"],
        most_duration_error=_most(found.duration_errors),
        duration_within={str(sense): within for sense, within in WITHIN.items()},
        late=counts["late"],
        held=found.held,
        most_delay=round(max((one[0] for one in found.delays), default=0.0), 3),
        most_delay_share=round(max((one[1] for one in found.delays), default=0.0), 3),
        unverified=counts["unverified"],
        disordered=counts["disorder"],
        wrong_others=counts["others"],
        examples=pick_examples(found.differing),
    )


def _most(errors: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {name: round(max(errors[name]), 3) for name in sorted(errors)}


def list_labels(script: Script) -> Iterator[Label]:
    """List every incident of a programme with what is to be told of it."""
    for sense in SENSES:
        threshold = script.config.threshold(sense) or 0
        silent = silent_kinds(script.config.silence_db_threshold)
        bad = BLACK if sense is Sense.BLACKOUT else silent
        for incident in list_incidents(script.programme, bad, threshold):
            yield _label(script, sense, incident)


def _label(script: Script, sense: Sense, incident: Incident) -> Label:
    end = incident.end if incident.end is not None else incident.first + incident.seen
    is_told = incident.enough is not None
    return Label(
        sense=sense,
        incident=incident,
        start_at=_tell_start(script.programme, incident.first),
        seconds=(end - incident.first) / FPS,
        due=_due(script, incident.enough - 1) if incident.enough is not None else None,
        over=_due(script, end + HEARD_FRAMES[sense]) if is_told else None,
    )


def _tell_start(programme: Programme, frame: int) -> datetime:
    """Tell when a frame is on by the clock; a date is that of a segment's begin, and counts on."""
    begin = programme.span(frame // programme.frames)[0] if programme.is_dated else frame
    on_clock = programme.clock_of(begin / FPS) + (frame - begin) / FPS
    return programme.at(on_clock) or programme.starts_at


def _due(script: Script, frame: int) -> Due:
    """Tell by when what a frame decides is told: an interval after its segment is there."""
    programme = script.programme
    last = programme.span(frame // programme.frames)[1]
    there = programme.clock_of(last / FPS, is_end=True)
    holds = [one.until for one in script.holds if one.start <= there <= one.until]
    counts_from = programme.at(there - (last - frame - 1) / FPS)
    by_at = programme.at(max([there + script.config.check_interval_sec, *holds]))
    return Due(
        by_at=by_at or programme.starts_at,
        counts_from=None if holds else counts_from,
    )


class _Judging:
    """Compares what was told of one stream."""

    def __init__(self, script: Script, told: Sequence[Told], found: Findings) -> None:
        self._script = script
        self._told = told
        self._found = found
        self._labels = list(list_labels(script))
        self._alerts: dict[int, Told] = {}
        self._ends: dict[int, Told] = {}

    def go_through(self) -> None:
        """Take all that was told in its order, and then look for what was not."""
        for one in self._told:
            if one.type in ALERTS:
                self._alert(one, ALERTS[EventType(one.type)])
            elif one.type in ENDS:
                self._end(one, ENDS[EventType(one.type)])
        wanted = [n for n, label in enumerate(self._labels) if label.due is not None]
        for number in wanted:
            if number not in self._alerts:
                self._differ("missing", number, None, "alert")
            elif number not in self._ends:
                self._differ("unrecovered", number, None, "recovery")
        self._check_others()
        self._check_order()
        self._found.incidents += len(self._labels)
        self._found.expected += len(wanted)
        self._found.alerted += len(self._alerts)
        self._found.recovered += len(self._ends)

    def _differ(self, what: str, number: int | None, ours: object, truth: object) -> None:
        label = None if number is None else self._labels[number]
        about = "" if label is None else _describe(label)
        _differ(self._found, what, self._script.programme.video_id, about, ours, truth)

    def _find(self, one: Told, sense: Sense) -> int | None:
        """Find the incident that is meant: the one that began nearest to what is told."""
        started_at = one.moment("started_at")
        far = {
            number: abs(label.start_at - started_at)
            for number, label in enumerate(self._labels)
            if label.sense is sense
        }
        nearest = min(far, key=lambda number: far[number], default=None)
        return nearest if nearest is not None and far[nearest] <= NEAR else None

    def _alert(self, one: Told, sense: Sense) -> None:
        number = self._find(one, sense)
        label = None if number is None else self._labels[number]
        if number is None or label is None or label.due is None:
            self._differ("false", number, f"{one.type} since {one.moment('started_at')}", None)
        elif number in self._alerts:
            self._differ("doubled", number, one.type, "once")
        else:
            self._alerts[number] = one
            self._check_start(number, one)
            self._check_delay(number, one, label.due)
            known = float(one.body["data"]["duration_sec"])
            least = (self._script.config.threshold(sense) or 0) - WITHIN[sense]
            if not least <= known <= label.incident.seen / FPS + WITHIN[sense]:
                self._differ("duration", number, known, f"{least:g} or more")

    def _end(self, one: Told, sense: Sense) -> None:
        number = self._find(one, sense)
        if number is None or number not in self._alerts:
            self._differ("false", number, f"{one.type} since {one.moment('started_at')}", None)
        elif number in self._ends:
            self._differ("doubled", number, one.type, "once")
        else:
            self._ends[number] = one
            self._check_start(number, one)
            self._check_duration(number, one)
            self._check_delay(number, one, self._labels[number].over)

    def _check_start(self, number: int, one: Told) -> None:
        label, programme = self._labels[number], self._script.programme
        off = abs((one.moment("started_at") - label.start_at).total_seconds())
        more = 0.0 if programme.is_dated else programme.segment_seconds
        name = f"{label.sense}, {'dated' if programme.is_dated else 'undated'}"
        self._found.start_errors.setdefault(name, []).append(off)
        if off > WITHIN[label.sense] + more + WRITTEN:
            self._differ("start", number, one.moment("started_at"), label.start_at)

    def _check_duration(self, number: int, one: Told) -> None:
        label, said = self._labels[number], one.body["data"]["total_duration_sec"]
        off = abs(said - label.seconds)
        self._found.duration_errors.setdefault(str(label.sense), []).append(off)
        told_for = (one.moment("recovered_at") - one.moment("started_at")).total_seconds()
        if off > WITHIN[label.sense] + WRITTEN or abs(told_for - said) > WRITTEN:
            self._differ("duration", number, f"{said} s, {told_for} s", f"{label.seconds:g} s")

    def _check_delay(self, number: int, one: Told, due: Due | None) -> None:
        if due is None:
            return
        if due.counts_from is None:
            self._found.held += 1
        else:
            delay = (one.at - due.counts_from).total_seconds()
            interval = self._script.config.check_interval_sec
            most = interval + self._script.programme.segment_seconds
            self._found.delays.append((delay, delay / most))
        if one.at > due.by_at + timedelta(seconds=WRITTEN):
            self._differ("late", number, f"{one.type} at {one.at}", due.by_at)

    def _check_others(self) -> None:
        """Insist on one start, one end and the errors that there were, and on nothing else."""
        errors = [
            f"{one.type} {one.body['data'].get('reason')}"
            for one in self._told
            if one.type not in {*ALERTS, *ENDS}
        ]
        reasons = [f"{EventType.SEGMENT_ERROR} {reason}" for reason in self._script.errors]
        truth = [f"{EventType.STARTED} None", *reasons, f"{EventType.ENDED} endlist"]
        if errors != truth:
            self._differ("others", None, ", ".join(errors), ", ".join(truth))

    def _check_order(self) -> None:
        """Insist on the order in which things were found, from the start to the end."""
        times = [one.body.get("timestamp", "") for one in self._told]
        ends = [self._told[0].type, self._told[-1].type] if self._told else []
        if times != sorted(times) or ends != [EventType.STARTED, EventType.ENDED]:
            self._differ("disorder", None, f"{ends}, {times}", "in the order of time")


def _describe(label: Label) -> str:
    first, seconds = label.incident.first / FPS, label.incident.seen / FPS
    return f"{label.sense} at {first:.2f} s, {seconds:.2f} s of it seen"
