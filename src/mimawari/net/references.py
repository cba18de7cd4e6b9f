"""Find the address of a notification target where it is kept: in a variable or in a file."""

import os
import stat
from datetime import timedelta

from mimawari.errors import BadInput, NotFound
from mimawari.net.threads import BoundedThreads

READ_FOR = timedelta(seconds=5)
MOST_STUCK = 4
"""So many reads may hang at a time, each in a dead mount say; further ones wait and then fail."""
_FILES = BoundedThreads("mimawari-file", MOST_STUCK)


def is_reference(kept: str) -> bool:
    """Tell whether an address is kept elsewhere."""
    return kept.partition(":")[0] in {"env", "file"}


async def find_kept(kept: str, most: int) -> str:
    """Return the text that a variable or a file holds; raise NotFound if there is none to be had.

    The error is the same whatever is in the way, so that it reveals nothing about other files.
    """
    scheme, _, name = kept.partition(":")
    text = os.environ.get(name, "") if scheme == "env" else await _read(name, most)
    if not text.strip() or len(text) > most:
        raise unusable(kept)
    return text.strip()


def unusable(kept: str) -> BadInput:
    """Make the one error of references: for what is missing, unreadable, too long or no address."""
    return NotFound(
        f"{kept} holds no address; put one there like ntfys://ntfy.sh/topic, alone in a variable"
        " or in a regular file that this program may read"
    )


async def _read(path: str, most: int) -> str:
    try:
        found = await _FILES.run(lambda: read_regular(path, most), READ_FOR)
    except (OSError, ValueError):
        return ""
    return found.decode("utf-8", "replace")


def read_regular(path: str, most: int) -> bytes:
    """Read a small regular file, at most one byte more than asked for; raise OSError for others.

    Symbolic links are followed, since Kubernetes mounts secrets as such. What is no regular file is
    not even opened: opening a terminal or a device may block or change it.
    """
    _check_regular(os.stat(path))  # noqa: PTH116 - a path of an operator, used as it is written
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    opened = os.open(path, flags)
    try:
        # It may have become something else since.
        _check_regular(os.fstat(opened))
        return os.read(opened, most + 1)
    finally:
        os.close(opened)


def _check_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError("not a regular file")
