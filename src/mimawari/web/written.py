"""How pages write what programs keep: values as text, addresses without their secrets, files."""

import json
from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from mimawari.edges.csv_export import BOM, TYPE, write_lines
from mimawari.log import hide_secrets, strike

__all__ = ["MOST_ROWS", "hide_secrets", "make_file", "write_json"]

MOST_ROWS = 10_000
"""How many rows a file holds at the most."""


def write_json(value: Any) -> str:
    """Write a value over lines for people, with what looks like a secret struck out."""
    return json.dumps(strike(value), ensure_ascii=False, indent=2, default=str)


def make_file(name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Response:
    """Answer with rows as a file that a spreadsheet opens."""
    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return Response(BOM + write_lines([columns, *rows]), media_type=TYPE, headers=headers)
