"""Writes messages: a title, a line an event, and where to see more."""

import re
from collections.abc import Mapping, Sequence

from mimawari.kernel.telling import Telling
from mimawari.net.notify import Message
from mimawari.notify.models import Told
from mimawari.settings import Settings
from mimawari.text import plain_line

MOST_LINES = 100
MOST_LINE = 300
MOST_LETTERS = 8000
NOTHING = {
    "ja": "これは試験送信です。このあて先に届くはずの出来事は、まだ記録されていません。",
    "en": "This is a test. Nothing that this target is to be told of has happened yet.",
}
# What chat services take for a call to everybody, or for a link that shows another text than its
# address, whoever wrote it into a title.
_MARKUP = re.compile(
    r"@(?=everyone|here|channel|room|all\b)|<(?=[!@#&]|[a-z][a-z0-9+.-]*:)|\](?=\()",
    re.IGNORECASE,
)


def write_message(
    send_id: str,
    language: str,
    told: Sequence[Told],
    tellings: Mapping[str, Telling],
    settings: Settings,
) -> Message:
    """Write all events of a message in a language, the earliest first, bounded in length."""
    ordered = sorted(told, key=lambda one: (one.at, one.id))
    lines = [_line(one, language, tellings, settings, len(ordered)) for one in ordered]
    shown = _fitting(lines)
    left = len(lines) - len(shown)
    if left:
        more = f"ほか{left}件" if language == "ja" else f"and {left} more"
        shown.append(_linked(more, f"/notify/sends/{send_id}", settings))
    body = "\n".join(shown) or NOTHING[language]
    return Message(id=send_id, title=_title(ordered, language, tellings), body=body)


def _fitting(lines: Sequence[str]) -> list[str]:
    room, shown = MOST_LETTERS, []
    for line in lines[:MOST_LINES]:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    return shown


def _title(told: Sequence[Told], language: str, tellings: Mapping[str, Telling]) -> str:
    app = "見回り" if language == "ja" else "Mimawari"
    kinds = {one.kind for one in told}
    if len(kinds) != 1:
        many = f"{len(told)}件のお知らせ" if language == "ja" else f"{len(told)} events"
        return f"{app}: {many}" if told else f"{app}: {'試験' if language == 'ja' else 'test'}"
    telling = tellings.get(next(iter(kinds)))
    name = telling.name(language) if telling else told[0].kind
    return f"{app}: {name}" + (f" ({len(told)})" if len(told) > 1 else "")


def _line(
    told: Told, language: str, tellings: Mapping[str, Telling], settings: Settings, many: int
) -> str:
    telling = tellings.get(told.kind)
    said = _say(told, telling, language)
    if many > 1:
        at = told.at.astimezone(settings.zone)
        said = f"・{at:%m-%d %H:%M} {said}" if language == "ja" else f"- {at:%m-%d %H:%M} {said}"
    try:
        path = telling.path(told.body) if telling else ""
    except (KeyError, TypeError, ValueError):
        path = ""
    return _linked(said, path, settings)


def _say(told: Told, telling: Telling | None, language: str) -> str:
    try:
        said = telling.line(told.body, language) if telling else told.kind
    except (KeyError, TypeError, ValueError):
        # An event of an older release may lack what the line of today wants to say.
        said = telling.name(language) if telling else told.kind
    return _MARKUP.sub(lambda mark: f"{mark[0]}\u200b", plain_line(said, most=MOST_LINE))


def _linked(said: str, path: str, settings: Settings) -> str:
    return f"{said} {settings.public_url}{path}" if settings.public_url and path else said
