"""The hot watch's messages as its specification prints them, in proto3 JSON and nothing else."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from mimawari.errors import BadInput
from mimawari.text import clean, one_line
from mimawari.wire.crawler_pb2 import CrawlRequest, CrawlResponse

MOST_BYTES = 16 * 1024 * 1024
MOST_NAME = 128
"""How long the name of a task may be."""

STATUSES = ("ITEM_STATUS_UNSPECIFIED", "ITEM_STATUS_ON_SALE", "ITEM_STATUS_SOLD")

Keep = Callable[[Any], Any]
"""Returns a field's value as the message may hold it, or None to leave the field out."""


def _whole(least: int, most: int) -> Callable[[Any], int | None]:
    def keep(value: Any) -> int | None:
        if isinstance(value, str) and value.removeprefix("-").isdigit() and value.isascii():
            value = int(value) if len(value) <= len(str(2**64)) else None
        is_number = isinstance(value, int) and not isinstance(value, bool)
        return value if is_number and value and least <= value <= most else None

    return keep


def _long(least: int, most: int) -> Callable[[Any], str | None]:
    whole = _whole(least, most)

    def keep(value: Any) -> str | None:
        found = whole(value)
        return None if found is None else str(found)

    return keep


def _text(value: Any) -> str | None:
    return clean(value) if isinstance(value, str) and value else None


def _status(value: Any) -> str | None:
    return value if value in STATUSES[1:] else None


def _items(value: Any) -> list[dict[str, Any]] | None:
    if not isinstance(value, list):
        return None
    return [_chosen(_ITEM, item) for item in value if isinstance(item, dict)] or None


def _chosen(fields: Mapping[str, Keep], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return of some arguments what the message has a field for."""
    kept = ((name, keep(args.get(name))) for name, keep in fields.items())
    return {name: value for name, value in kept if value is not None}


_INT32 = _whole(-(2**31), 2**31 - 1)
_INT64 = _long(-(2**63), 2**63 - 1)
_UINT64 = _long(0, 2**64 - 1)
_ITEM: Mapping[str, Keep] = {
    "sourceId": _text, "title": _text, "price": _INT32, "imageUrl": _text, "itemUrl": _text,
    "status": _status,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Form:
    """A message: its official class, its fields, and those without which it says nothing."""

    message: type[Message]
    fields: Mapping[str, Keep]
    needed: tuple[str, ...]

    def plain(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message that stored arguments hold, with nothing else that stands there."""
        return _chosen(self.fields, args)

    def parse(self, raw: bytes) -> dict[str, Any]:
        """Read what another program wrote; raise BadInput where it is no such message."""
        name = self.message.DESCRIPTOR.name
        if len(raw) > MOST_BYTES:
            raise BadInput(f"no {name}: longer than {MOST_BYTES // 1024 // 1024} MiB")
        try:
            decoded = json.loads(raw.decode())
            if not isinstance(decoded, dict):
                raise BadInput(f"no {name}: not an object")
            # A newer program may say more than this one understands.
            found = ParseDict(decoded, self.message(), ignore_unknown_fields=True)
        except (ParseError, ValueError, TypeError, RecursionError) as error:
            raise BadInput(f"no {name}: {one_line(str(error), most=200)}") from error
        args = self.plain(MessageToDict(found))
        if missing := [field for field in self.needed if field not in args]:
            raise BadInput(f"no {name}: without {' and '.join(missing)}")
        if not is_name(args.get("taskId", "")):
            raise BadInput(f"no {name}: a taskId has at most {MOST_NAME} plain characters")
        return args


def is_name(task_id: Any) -> bool:
    """Tell whether a task may be called so; its name stands in JSON and in keys as it is."""
    return (
        isinstance(task_id, str)
        and len(task_id) <= MOST_NAME
        and task_id.isprintable()
        and not {'"', "\\"} & set(task_id)
    )


REQUEST = Form(
    CrawlRequest,
    {
        "ipId": _UINT64, "keyword": _text, "taskId": _text, "createdAt": _INT64,
        "retryCount": _INT32, "pagesOnSale": _INT32, "pagesSold": _INT32,
    },
    needed=("ipId", "keyword"),
)  # fmt: skip
RESPONSE = Form(
    CrawlResponse,
    {
        "ipId": _UINT64, "items": _items, "totalFound": _INT32, "errorMessage": _text,
        "taskId": _text, "crawledAt": _INT64, "pagesCrawled": _INT32, "retryCount": _INT32,
    },
    needed=("ipId", "taskId", "crawledAt"),
)  # fmt: skip
