"""Where the captured replies and pages of real sites are: beside the project, or nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "fixtures"
ABSENT = "the captured replies and pages are not beside the project"
captured = pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)


def read_captured(path: Path) -> Any:
    """Read a captured reply in the midst of a test, or skip it."""
    if not FOLDER.is_dir():
        pytest.skip(ABSENT)
    return json.loads(path.read_text(encoding="utf-8"))
