"""Reads and writes jobs.yaml: what is wrong with it is told with its line."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import yaml

from mimawari.edges.yaml_lines import (
    MOST_BYTES,
    Wrong,
    compose,
    kind_of,
    line_of,
    say_character,
    show_text,
    tell_all,
)
from mimawari.errors import BadInput
from mimawari.text import clean, format_duration, parse_duration
from mimawari.watches.books.models import Search

FILE = "jobs.yaml"
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,39})")
_DIGITS = re.compile(r"[0-9.]+")
_SWITCH = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_NEEDED = {
    "jobs": "jobs: []",
    "name": "name: new-books",
    "queries": "queries: ['intitle:python']",
}
_LIKE = f"jobs: [{{{_NEEDED['name']}, {_NEEDED['queries']}}}], or jobs: [] for none"
# Each field is tried in it alone, so that one error hides no other.
_SAMPLE = Search(name="sample", queries=("sample",))

_Pairs = dict[str, tuple[yaml.Node, yaml.Node]]
_Known = Mapping[str, tuple[str, Callable[[yaml.Node], Any]]]


def parse_jobs(text: str) -> tuple[Search, ...]:
    """Read the jobs of a file, or refuse it with all that is wrong and on which lines."""
    if len(text.encode("utf-8", "surrogatepass")) > MOST_BYTES:
        raise BadInput(f"{FILE}: it is larger than 1 MB; write fewer jobs")
    problems: list[Wrong] = []
    jobs: list[Search] = []
    try:
        root = compose(text.removeprefix("\ufeff"), _LIKE)
    except Wrong as problem:
        problems.append(problem)
    else:
        jobs = _read_file(root, problems)
    if problems:
        raise tell_all(FILE, problems)
    return tuple(jobs)


def write_jobs(jobs: Sequence[Search]) -> str:
    """Write jobs in full, so that reading the text gives the same ones again."""
    return yaml.safe_dump(
        {"jobs": [describe(job) for job in jobs]},
        allow_unicode=True,
        sort_keys=False,
        width=MOST_BYTES,
    )


def describe(job: Search) -> dict[str, Any]:
    """Write a job in full, as plain values."""
    asked = {"printType": job.print_type, "langRestrict": job.lang_restrict}
    google = {name: value for name, value in asked.items() if value is not None}
    return {
        "name": job.name,
        "queries": list(job.queries),
        "enabled": job.enabled,
        **({"google_books": google} if google else {}),
        "interval": _write_interval(job.every_for),
        "mail_limit": job.mail_limit,
        "max_per_run": job.max_per_run,
        "recipients": list(job.recipients),
    }


def _write_interval(span: timedelta) -> str:
    written = format_duration(span)
    if parse_duration(written) == span:
        return written
    return f"{span / timedelta(milliseconds=1):.3f}ms"


def _read_file(root: yaml.Node, problems: list[Wrong]) -> list[Search]:
    parts = _find_pairs(root, ("defaults", "jobs"), problems, needed=("jobs",))
    usual: dict[str, Any] = {}
    if "defaults" in parts:
        pairs = _find_pairs(parts["defaults"][1], _DEFAULTS, problems)
        usual = _read_fields(pairs, _DEFAULTS, problems)
    if "jobs" not in parts:
        return []
    listed = parts["jobs"][1]
    if not isinstance(listed, yaml.SequenceNode):
        say = f"jobs: give a list, not {kind_of(listed)}; write jobs: [] for none"
        problems.append(Wrong(line_of(listed), say))
        return []
    seen: dict[str, int] = {}
    found = [_read_job(node, usual, seen, problems) for node in listed.value]
    return [job for job in found if job]


def _read_job(
    node: yaml.Node, usual: dict[str, Any], seen: dict[str, int], problems: list[Wrong]
) -> Search | None:
    before = len(problems)
    pairs = _find_pairs(node, _JOB_KEYS, problems, needed=("name", "queries"))
    asked = pairs.pop("google_books", None)
    values = _read_fields(pairs, _JOB, problems)
    if asked:
        inner = _find_pairs(asked[1], _GOOGLE_BOOKS, problems)
        values |= _read_fields(inner, _GOOGLE_BOOKS, problems)
    name = values.get("name")
    if name is not None:
        line = line_of(pairs["name"][0])
        if name in seen:
            say = f"name: {name} is the name of the job on line {seen[name]} too; give another"
            problems.append(Wrong(line, say))
        seen.setdefault(name, line)
    return Search(**usual | values) if len(problems) == before else None


def _find_pairs(
    node: yaml.Node,
    known: Collection[str],
    problems: list[Wrong],
    *,
    needed: Sequence[str] = (),
) -> _Pairs:
    """Find what each known key stands for; complain about all others, and those missing."""
    names = ", ".join(known)
    if not isinstance(node, yaml.MappingNode):
        say = f"give a mapping of {names}, not {kind_of(node)}"
        problems.append(Wrong(line_of(node), say))
        return {}
    pairs: _Pairs = {}
    for key, value in node.value:
        line = line_of(key)
        name = key.value if isinstance(key, yaml.ScalarNode) else kind_of(key)
        if name not in known:
            problems.append(Wrong(line, f"{show_text(name)} is no key here; give {names}"))
        elif name in pairs:
            first = line_of(pairs[name][0])
            problems.append(Wrong(line, f"{name} stands on line {first} too; keep one of them"))
        else:
            pairs[name] = key, value
    for name in needed:
        if name not in pairs:
            say = f"{name} is missing; write it like {_NEEDED[name]}"
            problems.append(Wrong(line_of(node), say))
    return pairs


def _read_fields(pairs: _Pairs, known: _Known, problems: list[Wrong]) -> dict[str, Any]:
    """Read the values that can be used, by the names of their fields."""
    values: dict[str, Any] = {}
    for name, (key, node) in pairs.items():
        field, read = known[name]
        try:
            value = read(node)
            replace(_SAMPLE, **{field: value})
        except BadInput as error:
            line = error.line if isinstance(error, Wrong) else line_of(key)
            words = str(error).replace(field, name, 1)
            say = words if words.startswith(name) else f"{name}: {words}"
            problems.append(Wrong(line, say))
        else:
            values[field] = value
    return values


def _read_text(node: yaml.Node) -> str:
    """Read the text as it stands there, also where YAML takes it for something else."""
    if not isinstance(node, yaml.ScalarNode):
        raise Wrong(line_of(node), f"give a text, not {kind_of(node)}; put it in quotes")
    text = str(node.value)
    refused = next((letter for letter in text if clean(letter) != letter), "")
    if refused:
        raise Wrong(line_of(node), say_character(refused))
    return text


def _read_texts(node: yaml.Node) -> tuple[str, ...]:
    if not isinstance(node, yaml.SequenceNode):
        raise Wrong(line_of(node), f"give a list, not {kind_of(node)}; begin each with a dash")
    return tuple(_read_text(inner) for inner in node.value)


def _read_switch(node: yaml.Node) -> bool:
    text = _read_text(node)
    if text.lower() not in _SWITCH:
        raise Wrong(line_of(node), f"give true or false, not {kind_of(node)}")
    return _SWITCH[text.lower()]


def _read_number(node: yaml.Node) -> int:
    text = _read_text(node)
    if not _WHOLE.fullmatch(text):
        raise Wrong(line_of(node), f"give a whole number like 20, not {kind_of(node)}")
    return int(text)


def _read_interval(node: yaml.Node) -> timedelta:
    text = show_text(_read_text(node))
    if _DIGITS.fullmatch(text):
        raise Wrong(line_of(node), f"{text} has no unit; write it like 24h")
    return parse_duration(text)


_DEFAULTS: _Known = {
    "interval": ("every_for", _read_interval),
    "mail_limit": ("mail_limit", _read_number),
    "max_per_run": ("max_per_run", _read_number),
}
_GOOGLE_BOOKS: _Known = {
    "printType": ("print_type", _read_text),
    "langRestrict": ("lang_restrict", _read_text),
}
_JOB: _Known = {
    "name": ("name", _read_text),
    "queries": ("queries", _read_texts),
    "enabled": ("enabled", _read_switch),
    **_DEFAULTS,
    "recipients": ("recipients", _read_texts),
}
_JOB_KEYS = ("name", "queries", "enabled", "google_books", *_DEFAULTS, "recipients")
