"""Where captured replies and pages, and tools too large for us, are: beside it, or nowhere."""

import json
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "fixtures"
ABSENT = "the captured replies and pages are not beside the project"
captured = pytest.mark.skipif(not FOLDER.is_dir(), reason=ABSENT)

KUBERNETES = FOLDER.parent / "tools" / "k8s"
NO_KUBERNETES = "the Kubernetes API server is not beside the project"
on_kubernetes = pytest.mark.skipif(not KUBERNETES.is_dir(), reason=NO_KUBERNETES)


def read_captured(path: Path) -> Any:
    """Read a captured reply in the midst of a test, or skip it."""
    if not FOLDER.is_dir():
        pytest.skip(ABSENT)
    return json.loads(path.read_text(encoding="utf-8"))
