"""Finds every regular expression of the program and attacks it: `python -m tests.patterns`.

An attack repeats what some repeated part of the pattern takes, very often, between texts that bring
the engine there and make it fail behind. A pattern that needs more than linear time for it betrays
itself by the CPU time. The output is JSON, one object a pattern that took too long.
"""

import ast
import json
import pkgutil
import re
import signal
import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from re import _constants as names  # type: ignore[attr-defined]
from re import _parser as reading  # type: ignore[attr-defined]
from typing import Any

import mimawari

LENGTH = 20_000
MOST_SECONDS = 0.1
METHODS = ("search", "match", "fullmatch", "sub", "split", "findall", "finditer")
SUFFIXES = ("", "\0", "!", "\n", "é", "0 ")
LEAST_REPEATED = 60
"""Parts that may be repeated at most so often cost little, however they are attacked."""
DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Found:
    """A regular expression, where it stands and how it is used."""

    module: str
    pattern: str | bytes
    flags: int
    methods: frozenset[str]

    @property
    def key(self) -> str:
        """Name it for those who list exceptions."""
        text = self.pattern if isinstance(self.pattern, str) else self.pattern.decode("latin-1")
        return f"{self.module}: {text}"


def modules() -> Iterator[str]:
    """Name every module of the program but its migrations."""
    yield "mimawari"
    for one in pkgutil.walk_packages(mimawari.__path__, "mimawari."):
        if "migrations" not in one.name and not one.name.endswith("notify_child"):
            yield one.name


def find() -> tuple[list[Found], list[str]]:
    """Find all patterns, and where one is made that cannot be known before it runs."""
    found: dict[tuple[str, str | bytes, int], set[str]] = {}
    unknown = []
    for name in modules():
        module = import_module(name)
        assert module.__file__
        source = Path(module.__file__).read_text("utf-8")
        tree = ast.parse(source)
        used = dict(_uses(tree))
        for label, pattern in _compiled(vars(module)):
            methods = used.get(label.partition("[")[0]) or set(METHODS)
            found.setdefault((name, pattern.pattern, pattern.flags), set()).update(methods)
        for call, method in _calls(tree):
            first = call.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str | bytes):
                flags = re.compile(first.value).flags
                found.setdefault((name, first.value, flags), set()).add(method)
            elif not (
                isinstance(first, ast.Name) and isinstance(vars(module).get(first.id), re.Pattern)
            ):
                unknown.append(f"{name}:{call.lineno}")
        for member in _named(tree):
            flags = re.compile(member).flags
            found.setdefault((name, member, flags), set()).add("fullmatch")
    everything = [Found(*key, frozenset(methods)) for key, methods in found.items()]
    return everything, unknown


def _calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    """List the calls of the module re that take a pattern and a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "re" and node.func.attr in METHODS:
                yield node, node.func.attr


def _named(tree: ast.AST) -> Iterator[str]:
    """List the patterns by which targets are named."""
    for node in ast.walk(tree):
        is_one = isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Naming"
        for keyword in node.keywords if is_one and isinstance(node, ast.Call) else ():
            if keyword.arg == "member" and isinstance(keyword.value, ast.Constant):
                yield str(keyword.value.value)


def _uses(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """Tell by which methods each name of a module is used."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        is_use = isinstance(node, ast.Attribute) and node.attr in METHODS
        if is_use and isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    yield from found.items()


def _compiled(
    value: Any, label: str = "", depth: int = 0
) -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    if isinstance(value, re.Pattern):
        yield label, value
    elif depth > DEEPEST:
        return
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not str(key).startswith("__"):
                yield from _compiled(inner, f"{label}[{key}]" if label else str(key), depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _compiled(inner, f"{label}[]", depth + 1)


class Sampler:
    """Writes texts that parts of a pattern take."""

    def __init__(self, pattern: Any) -> None:
        self.groups: dict[int, str] = {}
        self.parsed = reading.parse(pattern.pattern, pattern.flags & ~re.UNICODE)

    def sample(self, nodes: Sequence[Any], variant: int = 0) -> str:
        """Return a short text that some nodes take, if all goes well."""
        return "".join(self._one(kind, given, variant) for kind, given in nodes)

    def _one(  # noqa: C901, PLR0911 - a case a node
        self, kind: Any, given: Any, variant: int
    ) -> str:
        match kind:
            case names.LITERAL:
                return chr(given)
            case names.NOT_LITERAL:
                return next(one for one in "a0 -" if ord(one) != given)
            case names.ANY:
                return "a "[variant % 2]
            case names.IN:
                return _member(given, variant)
            case names.BRANCH:
                branches = given[1]
                return self.sample(branches[variant % len(branches)], variant)
            case names.SUBPATTERN:
                text = self.sample(given[-1], variant)
                if given[0] is not None:
                    self.groups[given[0]] = text
                return text
            case names.MAX_REPEAT | names.MIN_REPEAT | names.POSSESSIVE_REPEAT:
                return self.sample(given[2], variant) * max(int(given[0]), 1)
            case names.ATOMIC_GROUP:
                return self.sample(given, variant)
            case names.GROUPREF:
                return str(self.groups.get(given, ""))
            case names.GROUPREF_EXISTS:
                return self.sample(given[1], variant)
            case _:
                return ""

    def attacks(self) -> Iterator[tuple[str, str]]:
        """Yield pairs of what leads to a repeated part, and what that part takes once."""
        for variant in range(3):
            yield from self._attacks(self.parsed, "", variant)

    def _attacks(
        self, nodes: Sequence[Any], before: str, variant: int
    ) -> Iterator[tuple[str, str]]:
        lead = before
        for kind, given in nodes:
            if kind in {names.MAX_REPEAT, names.MIN_REPEAT} and given[1] > LEAST_REPEATED:
                yield lead, self.sample(given[2], variant)
                # A repeated part that begins anew behind each of its own beginnings.
                yield "", lead + self.sample(given[2], variant)
            inner: list[Any] = []
            match kind:
                case names.MAX_REPEAT | names.MIN_REPEAT:
                    inner = [given[2]]
                case names.SUBPATTERN:
                    inner = [given[-1]]
                case names.BRANCH:
                    inner = list(given[1])
            for one in inner:
                yield from self._attacks(one, lead, variant)
            lead += self._one(kind, given, variant)


def _member(given: Any, variant: int) -> str:
    """Choose a member of a set of characters."""
    negated = bool(given) and given[0][0] is names.NEGATE
    if negated:
        written = {one for kind, one in given if kind is names.LITERAL}
        return next((one for one in "a0 -é\0" if ord(one) not in written), "a")
    samples = []
    for kind, one in given:
        match kind:
            case names.LITERAL:
                samples.append(chr(one))
            case names.RANGE:
                samples.append(chr(one[0]))
            case names.CATEGORY:
                samples.append(_category(one))
    return samples[variant % len(samples)] if samples else "a"


@lru_cache
def _category(kind: Any) -> str:
    known = {
        names.CATEGORY_DIGIT: "0",
        names.CATEGORY_NOT_DIGIT: "a",
        names.CATEGORY_SPACE: " ",
        names.CATEGORY_NOT_SPACE: "a",
        names.CATEGORY_WORD: "a",
        names.CATEGORY_NOT_WORD: "-",
    }
    return known.get(kind, "a")


class Late(Exception):
    """A pattern took too long."""


def _late(*_: object) -> None:
    raise Late


def attack(one: Found, length: int = LENGTH) -> str | None:
    """Return the beginning of a text that a pattern takes too long over; None if there is none."""
    pattern = re.compile(
        one.pattern, one.flags & ~re.UNICODE if isinstance(one.pattern, str) else one.flags
    )
    tried = set()
    for lead, pump in Sampler(pattern).attacks():
        for suffix in SUFFIXES if pump else ():
            text = lead + pump * max(1, length // len(pump)) + suffix
            if text in tried:
                continue
            tried.add(text)
            # What was late once may have waited for another process's caches.
            if all(_is_late(pattern, text, one.methods) for _ in range(3)):
                return f"{lead!r} + {pump!r} * n + {suffix!r}"
    return None


def _is_late(pattern: "re.Pattern[Any]", text: str, methods: Collection[str]) -> bool:
    given: Any = text.encode("utf-8") if isinstance(pattern.pattern, bytes) else text
    for method in methods:
        signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
        try:
            if method in {"sub", "subn"}:
                pattern.sub(b"" if isinstance(given, bytes) else "", given)
            elif method == "finditer":
                list(pattern.finditer(given))
            else:
                getattr(pattern, method)(given)
        except Late:
            return True
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return False


def main() -> None:
    """Attack everything and write down what gave way."""
    signal.signal(signal.SIGVTALRM, _late)
    limits: dict[str, int] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    found, unknown = find()
    late = {}
    for one in found:
        bound = next((most for start, most in limits.items() if one.key.startswith(start)), LENGTH)
        if text := attack(one, bound):
            late[one.key] = text
    told = {"count": len(found), "unknown": unknown, "late": late}
    sys.stdout.write(json.dumps({**told, "keys": [one.key for one in found]}))


if __name__ == "__main__":
    main()
