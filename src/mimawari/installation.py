"""Advice on how to add an optional package, which depends on how this program was installed."""

import json
import shlex
import sys
from importlib import metadata
from json import JSONDecodeError
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

PROJECT = "mimawari"
LOCK = "requirements.lock"
STEPS = ("Makefile", "tools/venv")
"""Files of a clone that `make venv` needs."""


def install_advice(extra: str, *, python: Path | None = None) -> str:
    """Return a clause that says how to add an extra to this installation.

    It never names a package index: nobody owns this project's name there.
    """
    python = python or Path(sys.executable)
    source = find_source(_read_origin())
    if source is None:
        return (
            f"install this program again with its extra '{extra}',"
            " from the file or folder that it was installed from"
        )
    if _is_venv_of(source, python):
        folder = shlex.quote(str(source))
        return f"run 'make venv' in {folder} ('make -B venv' if it finds nothing to do)"
    pip = f"{shlex.quote(str(python))} -m pip install"
    lock = source / LOCK
    if lock.is_file():
        return f"run: {pip} --no-deps --require-hashes -r {shlex.quote(str(lock))}"
    return f"run: {pip} {shlex.quote(f'{source}[{extra}]')}"


def find_source(origin: dict[str, Any]) -> Path | None:
    """Return the folder or file named by a direct_url.json (PEP 610), if it is still there."""
    url = origin.get("url")
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url)
        if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
            return None
        path = Path(url2pathname(parts.path))
        return path if path.exists() else None
    except (OSError, ValueError):
        return None


def _read_origin() -> dict[str, Any]:
    """Return what pip wrote about the origin of this installation; empty if it wrote nothing."""
    try:
        text = metadata.distribution(PROJECT).read_text("direct_url.json")
        origin = json.loads(text or "{}")
    except (metadata.PackageNotFoundError, JSONDecodeError):
        return {}
    return origin if isinstance(origin, dict) else {}


def _is_venv_of(source: Path, python: Path) -> bool:
    is_clone = all((source / name).is_file() for name in STEPS)
    # The folder is compared, not the interpreter, which is a link to one that others share.
    return is_clone and python.parent.parent.resolve() == (source / ".venv").resolve()
