"""The folder of responses, laid out so that a change of one value is a change of one line."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.golden.comparing import list_differences
from tests.golden.reading import Responses

FOLDER = Path(__file__).parent / "responses"
WIDTH = 160
"""What fits into a line of so many letters is written in one."""


def keep(responses: Responses, folder: Path = FOLDER) -> None:
    """Replace the kept responses by these."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.json"):
        path.unlink()
    for name, found in responses.items():
        text = "\n".join(_lay(found, 0)) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


def load_kept(folder: Path = FOLDER) -> Responses:
    """Read the kept responses."""
    paths = sorted(folder.glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in paths}


def compare(kept: Responses, found: Responses) -> list[str]:
    """List all differences, each with its file, its request and its place in the response."""
    differences = []
    for name in sorted({*kept, *found}):
        old, new = kept.get(name, {}), found.get(name, {})
        for text in [*old, *(text for text in new if text not in old)]:
            where = f"{name}: {text}"
            if text not in new:
                differences.append(f"{where}: is not requested any more")
            elif text not in old:
                differences.append(f"{where}: has no kept response")
            else:
                found_here = list_differences(old[text], new[text])
                differences += [f"{where}: {one}" for one in found_here]
    return differences


def _lay(value: Any, depth: int) -> Iterator[str]:
    """Write a value in a line if it fits, else a part a line."""
    indent = " " * depth
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (value and len(flat) <= WIDTH and depth > 1):
        yield f"{indent}{flat}"
    elif isinstance(value, dict):
        yield f"{indent}{{"
        for number, (name, one) in enumerate(value.items()):
            lines = list(_lay(one, depth + 1))
            lines[0] = f"{indent} {json.dumps(name, ensure_ascii=False)}: {lines[0].lstrip(' ')}"
            yield from _end(lines, is_last=number + 1 == len(value))
        yield f"{indent}}}"
    else:
        yield f"{indent}["
        for number, one in enumerate(value):
            yield from _end(list(_lay(one, depth + 1)), is_last=number + 1 == len(value))
        yield f"{indent}]"


def _end(lines: list[str], *, is_last: bool) -> Iterator[str]:
    yield from lines[:-1]
    yield lines[-1] if is_last else f"{lines[-1]},"
