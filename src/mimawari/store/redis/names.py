"""The keys and messages in Redis: those of the hot watch by its specification, others alike."""

import json
from collections.abc import Mapping
from typing import Any

from mimawari.kernel.job import NORMAL
from mimawari.store.sql.arguments import load
from mimawari.text import clean

PREFIX = "animetop:"
EPOCH = f"{PREFIX}epoch"
PROCESSED = f"{PREFIX}processed"
QUEUES = f"{PREFIX}queues"
HANDED = f"{PREFIX}handed"
CALLS = (HANDED, f"{HANDED}:until")
"""What unconfirmed calls have handed out, and until when they may be confirmed."""
IPS = f"{PREFIX}schedule:pending"
SCHEDULES = f"{PREFIX}schedules"

_QUEUES = {"hot.crawl": "tasks", "hot.apply": "results"}
_USUAL = {"hot.apply": 50}
"""The priority that most jobs of a kind have, where it is not the normal one."""

_SECOND = 1_000_000
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def queue_of(kind: str) -> str:
    """Name the list of a kind's due jobs; its other keys begin so."""
    return f"{PREFIX}queue:{_QUEUES.get(kind, kind)}"


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
    """Name a cached value: the hot watch's by its specification."""
    hot = key.startswith("hot:")
    return f"{PREFIX}{key.removeprefix('hot:')}" if hot else f"{PREFIX}cache:{key}"


def message_of(row: Any) -> str:
    """Write a job as it stands in its list, to be read by people; the id comes first."""
    head = {"jobId": row.id}
    created = str(row.enqueued_at // _SECOND)
    if row.kind not in _QUEUES:
        named = {**head, "kind": row.kind, "target": row.target, "createdAt": created}
        text = _encode(named)[:-1] + f',"args":{_readable(row.args)}}}'
        return clean(text)
    args, broken = load(row.args)
    said: Mapping[str, Any] = {"broken": broken} if broken else args
    message = {**head, "taskId": row.id, "createdAt": created, **said}
    if row.attempts:
        message["retryCount"] = row.attempts
    return clean(_encode(message))


def _readable(args: str) -> str:
    """Write escaped letters out."""
    if "\\u" not in args:
        return args
    loaded, broken = load(args)
    return args if broken else _encode(loaded)


def task_of(row: Any) -> str:
    """Tell which crawl an ended job has counted, or nothing."""
    if row.kind != "hot.apply" or row.state != "done":
        return ""
    args, _ = load(row.args)
    return clean(str(args.get("taskId") or row.id))
