"""Rows as a file that a spreadsheet opens: CSV in UTF-8, in which no cell is a formula."""

import csv
import io
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

BOM = "\ufeff"
"""Without it spreadsheets take Japanese for another encoding."""
TYPE = "text/csv; charset=utf-8"
# What spreadsheets take for the beginning of a formula, also in its wide form.
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
BETWEEN = "|"
"""Stands between the parts of a cell that holds several."""

CSV: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The rows, as JSON or as a CSV file in UTF-8.",
        "content": {"text/csv": {"schema": {"type": "string"}}},
    }
}
"""Describes that a route answers in CSV too."""


def cell(value: Any) -> str:
    """Write a value so that no spreadsheet runs it."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case list() | tuple():
            return cell(BETWEEN.join(map(str, value)))
        case _:
            text = str(value)
            return f"'{text}" if text.startswith(FORMULA) else text


def write_lines(rows: Sequence[Sequence[Any]]) -> str:
    """Write rows as lines of CSV."""
    stream = io.StringIO()
    csv.writer(stream).writerows([cell(value) for value in row] for row in rows)
    return stream.getvalue()


def flatten(row: BaseModel) -> Mapping[str, Any]:
    """Lay what is inside a row's parts beside the row's own values."""
    found: dict[str, Any] = {}
    for name, value in row.model_dump(mode="json").items():
        found |= value if isinstance(value, dict) else {name: value}
    return found


async def download(
    name: str, columns: Sequence[str], pieces: AsyncIterator[Sequence[BaseModel]]
) -> Response:
    """Answer with a file that is written while it is read; the first piece is read before."""
    # While nothing is sent yet, a store that is down can still be told as an error.
    first = await anext(pieces, ())

    async def written() -> AsyncIterator[str]:
        yield BOM + write_lines([columns])
        yield _write(columns, first)
        async for piece in pieces:
            yield _write(columns, piece)

    headers = {"Content-Disposition": f'attachment; filename="{name}.csv"'}
    return StreamingResponse(written(), media_type=TYPE, headers=headers)


async def one_piece(rows: Sequence[BaseModel]) -> AsyncIterator[Sequence[BaseModel]]:
    """Give rows that are all there to what reads them in pieces."""
    yield rows


def _write(columns: Sequence[str], rows: Sequence[BaseModel]) -> str:
    flat = map(flatten, rows)
    return write_lines([[row[column] for column in columns] for row in flat])
