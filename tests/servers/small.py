"""A small file system of its own, to be filled or made read-only by a test."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

MIB = 1024 * 1024


def _mount(*options: str) -> None:
    done = subprocess.run(["mount", *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small file system can be mounted here: {done.stderr.strip()}")


@contextlib.contextmanager
def small_disk(folder: Path, *, mib: int, account: str = "root") -> Iterator[None]:
    """Mount a file system of so many MiB on a folder; skip, and say so, where none may mount."""
    folder.mkdir(exist_ok=True)
    _mount("-t", "tmpfs", "-o", f"size={mib}m", "tmpfs", str(folder))
    try:
        shutil.chown(folder, account, account)
        yield
    finally:
        # What a server still holds open there is let go when the server ends.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Leave no byte free on a folder's file system for as long as the block lasts."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(os.urandom(4096)):
            pass
    try:
        yield
    finally:
        ballast.unlink()


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Remount a folder's file system so that nothing can be written there."""
    _mount("-o", "remount,ro", str(folder))
    try:
        yield
    finally:
        _mount("-o", "remount,rw", str(folder))
