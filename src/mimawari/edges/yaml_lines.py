"""Reads YAML so that whatever is wrong with it can be told with its line."""

import re
from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.reader import ReaderError

from mimawari.errors import BadInput
from mimawari.text import clean, one_line

MOST_BYTES = 1024 * 1024
MOST_TOLD = 10
"""So many errors are told at once."""
_MOST_DEEP = 8
_MOST_NODES = 100_000
_MOST_SHOWN = 40
_LINE_END = re.compile(r"\r\n|\r|\n")
_TIMES = "tag:yaml.org,2002:timestamp"

Path = tuple[str | int, ...]


class Wrong(BadInput):
    """What is wrong on one line."""

    def __init__(self, line: int, words: str) -> None:
        super().__init__(one_line(words))
        self.line = line


def tell_all(name: str, problems: list[Wrong]) -> BadInput:
    """Tell all that is wrong with a file, by its lines."""
    problems = sorted(problems, key=lambda problem: problem.line)
    told = [f"line {problem.line}: {problem}" for problem in problems[:MOST_TOLD]]
    if len(problems) > MOST_TOLD:
        told.append(f"and {len(problems) - MOST_TOLD} more")
    return BadInput(f"{name}, {'; '.join(told)}")


class _Loader(yaml.SafeLoader):
    """Makes nodes of text, but none that stand for others and no more than a file needs."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._deep = self._nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Make one node and those in it."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = line_of(event)
        if getattr(event, "anchor", None) is not None:
            raise Wrong(line, "& and * stand for other text; write that out, or put it in quotes")
        if getattr(event, "tag", None) is not None:
            raise Wrong(line, "! begins a tag, which nothing here has; put the text in quotes")
        self._nodes += 1
        if self._deep >= _MOST_DEEP or self._nodes > _MOST_NODES:
            raise Wrong(line, "this is nested too deep or goes on too long; write less")
        self._deep += 1
        node = super().compose_node(parent, index)
        self._deep -= 1
        return node


def compose(text: str, like: str) -> yaml.Node:
    """Make nodes of the text; one that holds nothing is told what it should be like."""
    try:
        loader = _Loader(text)
    except ReaderError as error:
        line = len(_LINE_END.findall(text, 0, error.position)) + 1
        raise Wrong(line, say_character(text[error.position])) from error
    try:
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        raise _tell_syntax(error) from error
    except (ValueError, OverflowError) as error:
        # The parser makes characters and numbers of any digits, also of far too many.
        raise Wrong(loader.line + 1, "a number here is too large; put plain text") from error
    if root is None or is_nothing(root):
        raise Wrong(1, f"it is empty; write {like}")
    return root


def _tell_syntax(error: yaml.MarkedYAMLError) -> Wrong:
    problem = error.problem or "not understood"
    # What is never closed is mended where it begins.
    marks = (error.problem_mark, error.context_mark)
    found = [mark for mark in (marks[::-1] if "stream" in problem else marks) if mark]
    line = found[0].line + 1 if found else 1
    if r"'\t'" in problem:
        return Wrong(line, "a tab stands here; indent with spaces")
    if isinstance(error, ComposerError):
        return Wrong(line, "another document begins here; write all in one")
    hint = "put text that has quotes, # or a colon and a space into single quotes"
    return Wrong(line, f"this is no YAML ({problem}); {hint}")


def is_nothing(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == ""


def kind_of(node: yaml.Node) -> str:
    if isinstance(node, yaml.ScalarNode):
        return "nothing" if is_nothing(node) else show_text(node.value)
    return "a list" if isinstance(node, yaml.SequenceNode) else "a mapping"


def show_text(text: str) -> str:
    return one_line(text, most=_MOST_SHOWN)


def say_character(letter: str) -> str:
    return f"the character U+{ord(letter):04X} cannot be kept; take it out"


def line_of(found: yaml.Node | yaml.Event) -> int:
    return found.start_mark.line + 1 if found.start_mark else 1


def read_plain(root: yaml.Node) -> tuple[Any, dict[Path, int]]:
    """Make plain values of nodes, and tell on which line each of them stands."""
    lines: dict[Path, int] = {}
    return _plain(root, (), lines), lines


def _plain(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    lines[path] = line_of(node)
    if isinstance(node, yaml.SequenceNode):
        return [_plain(inner, (*path, place), lines) for place, inner in enumerate(node.value)]
    if isinstance(node, yaml.MappingNode):
        return _plain_pairs(node, path, lines)
    if not isinstance(node, yaml.ScalarNode):
        raise Wrong(line_of(node), "nobody knows what this is; put it in quotes")
    refused = next((letter for letter in node.value if clean(letter) != letter), "")
    if refused:
        raise Wrong(line_of(node), say_character(refused))
    if node.tag == _TIMES:
        return node.value
    try:
        return yaml.SafeLoader("").construct_object(node)
    except (ValueError, OverflowError, yaml.MarkedYAMLError) as error:
        raise Wrong(line_of(node), f"{show_text(node.value)} cannot be read") from error


def _plain_pairs(node: yaml.MappingNode, path: Path, lines: dict[Path, int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = str(key.value) if isinstance(key, yaml.ScalarNode) else kind_of(key)
        if name in found:
            raise Wrong(line_of(key), f"{show_text(name)} stands here twice; keep one of them")
        found[name] = _plain(value, (*path, name), lines)
        # What is wrong with a field is told on the line of its name.
        lines[(*path, name)] = line_of(key)
    return found
