"""The keys and messages in Redis: those of the hot watch by its specification, others alike."""

import json
from collections.abc import Mapping
from typing import Any

from mimawari.kernel.job import NORMAL, State
from mimawari.store.sql.arguments import load
from mimawari.text import clean
from mimawari.wire.crawling import REQUEST, RESPONSE, Form, is_name

PREFIX = "animetop:"
OLD_EPOCH = f"{PREFIX}epoch"
"""Said by programs whose messages hold more than their definition has fields for."""
EPOCH = f"{OLD_EPOCH}:2"
PROCESSED = (f"{PREFIX}processed", f"{PREFIX}processed:at")
"""The tasks that were counted, and since when each of them is there."""
MARK = ":making"
"""How the names of marks end, which say who makes an answer just now."""
QUEUES = f"{PREFIX}queues"
HANDED = f"{PREFIX}handed"
CALLS = (HANDED, f"{HANDED}:until")
"""What unconfirmed calls have handed out, and until when they may be confirmed."""
IPS = f"{PREFIX}schedule:pending"
SCHEDULES = f"{PREFIX}schedules"

FORMS: Mapping[str, Form] = {"hot.crawl": REQUEST, "hot.apply": RESPONSE}
"""The kinds whose messages other programs read and write, with their definitions."""
_QUEUES = {"hot.crawl": "tasks", "hot.apply": "results"}
_KINDS = {name: kind for kind, name in _QUEUES.items()}
_USUAL = {"hot.apply": 50}
"""The priority that most jobs of a kind have, where it is not the normal one."""

_SECOND = 1_000_000
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def queue_of(kind: str) -> str:
    """Name the list of a kind's due jobs; its other keys begin so."""
    return f"{PREFIX}queue:{_QUEUES.get(kind, kind)}"


def kind_of(queue: str) -> str:
    """Name the kind whose due jobs stand in a list."""
    name = queue.removeprefix(f"{PREFIX}queue:")
    return _KINDS.get(name, name)


def usual_of(kind: str) -> int:
    """Tell the priority whose jobs stand in the list itself."""
    return _USUAL.get(kind, NORMAL)


def schedule_of(kind: str) -> str:
    """Name the sorted set of a kind's targets."""
    return IPS if kind == "hot.crawl" else f"{PREFIX}schedule:{kind}"


def member_from(schedule: str, member: str) -> str:
    """Name a target that stands so in a sorted set."""
    return f"hot:{member}" if schedule == IPS else member


def key_of(kind: str, key: str | None) -> str:
    """Name a dedupe key as it stands among those that live."""
    if key is None:
        return ""
    return f"ip:{key.removeprefix('hot:')}" if kind == "hot.crawl" else key


def value_of(key: str) -> str:
    """Name a cached value: the hot watch's by its specification, and no mark of ours among them."""
    hot = key.startswith("hot:") and not key.endswith(MARK)
    return f"{PREFIX}{key.removeprefix('hot:')}" if hot else f"{PREFIX}cache:{key}"


def message_of(row: Any) -> str:
    """Write a job as it stands in its list; its name comes first, by which scripts know it."""
    if (form := FORMS.get(row.kind)) is None:
        named = {"jobId": row.id, "kind": row.kind, "target": row.target}
        named["createdAt"] = str(row.enqueued_at // _SECOND)
        text = _encode(named)[:-1] + f',"args":{_readable(row.args)}}}'
        return clean(text)
    args, _ = load(row.args)
    message = {"taskId": "", **form.plain(args)}
    message["taskId"] = task_of(row)
    if "createdAt" in form.fields:
        message.setdefault("createdAt", str(row.enqueued_at // _SECOND))
    # What is claimed or over has begun its last attempt, which is a try and no retry yet.
    if retries := row.attempts - (row.state != State.PENDING) if row.attempts else 0:
        message["retryCount"] = retries
    return clean(_encode(message))


def _readable(args: str) -> str:
    """Write escaped letters out."""
    if "\\u" not in args:
        return args
    loaded, broken = load(args)
    return args if broken else _encode(loaded)


def task_of(row: Any) -> str:
    """Name the task that a job's message is about; nothing where it has no such message."""
    if row.kind not in FORMS:
        return ""
    args, _ = load(row.args)
    task_id = args.get("taskId")
    return str(task_id) if task_id and is_name(task_id) else str(row.id)


def counted_of(row: Any) -> str:
    """Tell which crawl an ended job has counted, or nothing."""
    return task_of(row) if row.kind == "hot.apply" and row.state == State.DONE else ""
