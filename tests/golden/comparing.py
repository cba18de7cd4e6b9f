"""Compare two responses value by value, and say where they differ."""

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

MOST_SHOWN = 160
"""A value is shown with so many letters."""


def list_differences(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """List each difference between two JSON values with its path."""
    if isinstance(old, dict) and isinstance(new, dict):
        if _is_table(old) and _is_table(new):
            yield from _compare_tables(old, new, path)
        else:
            yield from _compare_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _compare_lists(old, new, path)
    elif _differ(old, new):
        yield f"{path}: {_show(old)} became {_show(new)}"


def _differ(old: Any, new: Any) -> bool:
    # 1, 1.0 and true are equal for Python, and three values for who reads JSON.
    return type(old) is not type(new) or bool(old != new)


def _compare_objects(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    for name in [*old, *(name for name in new if name not in old)]:
        where = f"{path}.{name}" if path else name
        if name not in new:
            yield f"{where}: {_show(old[name])} is gone"
        elif name not in old:
            yield f"{where}: {_show(new[name])} is new"
        else:
            yield from list_differences(old[name], new[name], where)


def _is_table(value: dict[str, Any]) -> bool:
    return value.keys() == {"columns", "rows"}


def _compare_tables(old: dict[str, Any], new: dict[str, Any], path: str) -> Iterator[str]:
    """Compare CSV files: the columns, and then by row and column."""
    yield from _compare_lists(old["columns"], new["columns"], f"{path}.columns")
    rows = [[_name_cells(table["columns"], row) for row in table["rows"]] for table in (old, new)]
    yield from _compare_lists(rows[0], rows[1], f"{path}.row")


def _name_cells(columns: Sequence[str], row: Sequence[str]) -> Any:
    return dict(zip(columns, row, strict=True)) if len(columns) == len(row) else list(row)


def _compare_lists(old: Sequence[Any], new: Sequence[Any], path: str) -> Iterator[str]:
    before, after = [_key(one) for one in old], [_key(one) for one in new]
    if before == after:
        return
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for what, i, i_end, j, j_end in matcher.get_opcodes():
        if what == "equal":
            continue
        both = min(i_end - i, j_end - j)
        for k in range(both):
            yield from list_differences(old[i + k], new[j + k], f"{path}[{i + k}]")
        for k in range(i + both, i_end):
            yield f"{path}[{k}]: {_show(old[k])} is gone"
        for k in range(j + both, j_end):
            yield f"{path}[{k}]: {_show(new[k])} is new"


def _key(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
