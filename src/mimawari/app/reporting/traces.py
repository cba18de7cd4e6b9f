"""What is shown of an error to those outside: its type and its way, never what it says."""

import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

LONGEST_CHAIN = 10
LONGEST_WAY = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One step on the way to an error."""

    file: str
    line: int
    function: str

    @property
    def is_ours(self) -> bool:
        """Whether it is in a file of this program."""
        return self.file.startswith("mimawari/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """An error without its message, which may quote what was read."""

    module: str
    name: str
    frames: tuple[Frame, ...]


def list_raised(error: BaseException) -> list[Raised]:
    """List an error and then what it came from, each with its way, the last step last."""
    return [
        Raised(
            module=type(link).__module__,
            name=type(link).__qualname__,
            frames=tuple(_frames(link)),
        )
        for link in islice(_chain(error), LONGEST_CHAIN)
    ]


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        before = None if error.__suppress_context__ else error.__context__
        error = error.__cause__ or before


def _frames(error: BaseException) -> Iterator[Frame]:
    steps = list(traceback.walk_tb(error.__traceback__))
    for frame, line in steps[-LONGEST_WAY:]:
        code = frame.f_code
        yield Frame(file=_short(code.co_filename), line=line, function=code.co_qualname)


def _short(file: str) -> str:
    """Name a file as it is imported, without the folders of this machine."""
    path = Path(file)
    roots = (root for root in map(Path, sys.path) if path.is_relative_to(root) and root.parts)
    longest = max(roots, key=lambda root: len(root.parts), default=path.parent)
    return path.relative_to(longest).as_posix()
