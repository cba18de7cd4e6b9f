"""The commands of a watch as they are shown, run in this process because that is quick."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from typer.testing import CliRunner

from mimawari.app.cli import app
from tests.app.terminal import Said


@dataclass(frozen=True, slots=True)
class Screen:
    """A screen of 80 columns with a data folder of its own."""

    data: Path
    watch: str
    variables: dict[str, str] = field(default_factory=dict)

    def run(self, *words: str, **more: str) -> Said:
        """Run a command of the watch to its end."""
        settings = {"MIMAWARI_DATA": str(self.data), "COLUMNS": "80", **self.variables, **more}
        with _quiet():
            done = CliRunner().invoke(app, [self.watch, *words], env=settings)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Said(done.exit_code, done.stdout, done.stderr)

    def written(self, name: str, content: str | bytes) -> str:
        """Write a file and return its path."""
        path = self.data.parent / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)


@contextmanager
def _quiet() -> Iterator[None]:
    """Leave logging as it was before."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()
