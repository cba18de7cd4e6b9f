"""Looks once at a stream or a file, and shows what it saw and heard."""

from collections.abc import Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from mimawari import show
from mimawari.edges.progress import open_bars
from mimawari.edges.system import System
from mimawari.errors import Invalid
from mimawari.media.findings import Look
from mimawari.watches.streams.models import Quality
from mimawari.watches.streams.probe.drawing import draw
from mimawari.watches.streams.probe.parts import Wanted
from mimawari.watches.streams.probe.sources import Source, open_source
from mimawari.watches.streams.probe.timeline import Probed, Probing

Tell = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is looked at, how well and for how long."""

    target: str
    quality: Quality
    seconds: int
    silence_db: float
    is_json: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """One look: at what, what it found, and how long it took."""

    source: Source
    probed: Probed
    took_seconds: float


async def look_and_show(opened: System, wish: Wish) -> None:
    """Look once, and write what was found for a person or a program."""
    look = Look(silence_db=wish.silence_db, has_freeze=True, has_bars=True, has_loudness=True)
    wanted = Wanted(look=look, seconds=float(wish.seconds), quality=wish.quality)
    looked = await _look(opened, wish.target, wanted)
    if wish.is_json:
        show.console.print_json(show.as_json(_plain(opened, wish.target, looked)))
    else:
        _show(opened, wish.target, looked)


async def _look(opened: System, target: str, wanted: Wanted) -> _Looked:
    probing, since = Probing(), opened.clock.mark()
    with _bar(wanted) as begin:
        async with open_source(opened, target, wanted) as source, aclosing(source.parts) as parts:
            tell = begin(source)
            async for part in parts:
                probing.add(part)
                tell(probing.place.end)
                if probing.place.end >= wanted.seconds:
                    break
    probed = probing.finish()
    if not probed.pieces:
        why = "; ".join(probed.words) or "it has no pieces"
        raise Invalid(f"nothing could be seen: {why}; try another quality, or another part of it")
    took = opened.clock.mark().elapsed_since(since)
    return _Looked(source=source, probed=probed, took_seconds=took.total_seconds())


@contextmanager
def _bar(wanted: Wanted) -> Iterator[Callable[[Source], Tell]]:
    """Show how many seconds were looked at of how many there may be."""
    with open_bars() as bars:
        task = bars.add_task("finding it", total=None)

        def begin(source: Source) -> Tell:
            total = min(wanted.seconds, source.total_seconds or wanted.seconds)
            bars.update(task, description="seconds looked at", total=round(total))
            return lambda done: bars.update(task, completed=round(min(done, total)))

        yield begin


def _plain(opened: System, target: str, looked: _Looked) -> dict[str, Any]:
    probed, source = looked.probed, looked.source
    begins_at = source.begins_at
    whole = asdict(probed)
    del whole["levels"]
    for name in ("picture", "sound", "unseen"):
        whole[name] = [
            {"what": one.what, "from": one.start, "to": one.end, "seconds": round(one.seconds, 3)}
            for one in getattr(probed, name)
        ]
    whole["lufs"] = None if probed.lufs is None else round(probed.lufs, 1)
    return {
        "target": target,
        "kind": source.kind,
        "title": source.title,
        "begins_at": begins_at.astimezone(opened.settings.zone) if begins_at else None,
        "took_seconds": round(looked.took_seconds, 3),
        **whole,
    }


def _show(opened: System, target: str, looked: _Looked) -> None:
    probed = looked.probed
    show.facts(_facts(opened, target, looked))
    show.say("")
    for line in draw(probed, show.console.width):
        show.console.print(line, soft_wrap=True, highlight=False)
    show.say("")
    columns: dict[str, Any] = {
        "what": lambda one: one.what,
        "from": lambda one: f"{one.start:.2f}",
        "to": lambda one: f"{one.end:.2f}",
        "seconds": lambda one: f"{one.seconds:.2f}",
    }
    bad = sorted([*probed.picture, *probed.sound, *probed.unseen], key=lambda one: one.start)
    show.table(bad, columns, empty="Nothing is wrong with it.")


def _facts(opened: System, target: str, looked: _Looked) -> dict[str, str]:
    probed, source = looked.probed, looked.source
    facts = {source.kind: show.cell(target, most=600)}
    if source.title:
        facts["title"] = show.cell(source.title, most=200)
    if source.begins_at is not None:
        facts["begins"] = show.when(source.begins_at, opened.clock.now(), opened.settings.zone)
    speed = probed.seconds / max(looked.took_seconds, 0.001)
    pieces = f"{probed.pieces} piece{'s' * (probed.pieces != 1)}"
    facts["looked at"] = (
        f"{probed.seconds:.1f} s in {pieces}; it took {looked.took_seconds:.1f} s,"
        f" {speed:.0f} times as fast as it plays"
    )
    facts["picture"] = f"{probed.frames_a_second:g} a second" if probed.frames_a_second else "none"
    facts["sound"] = _loudness(probed)
    if probed.bad_packets:
        facts["broken"] = f"[yellow]{probed.bad_packets} packets cannot be decoded[/]"
    if probed.unseen or probed.words:
        why = show.cell("; ".join(probed.words), most=400)
        facts["not seen"] = f"[yellow]{probed.unseen_seconds:.1f} s[/]: {why}"
    return facts


def _loudness(probed: Probed) -> str:
    if not probed.has_sound:
        return "[red]no track[/]"
    return "silent throughout" if probed.lufs is None else f"{probed.lufs:.1f} LUFS"
