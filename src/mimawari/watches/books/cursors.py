"""The cursors: where the reading of each job's queries stands."""

from datetime import datetime
from typing import Any

from sqlalchemy import delete, select

from mimawari.kernel.ports import Reader, Tx
from mimawari.watches.books.models import Cursor, KeptCursor
from mimawari.watches.books.tables import cursors


def _make_cursor(row: Any) -> KeptCursor:
    return KeptCursor(
        job_name=row.job_name,
        query_set_hash=row.query_set_hash,
        start_index=row.start_index,
        is_exhausted=row.is_exhausted == 1,
        last_updated_at=row.last_updated_at,
    )


async def find_cursor(reader: Reader | Tx, job_name: str, query_set_hash: str) -> KeptCursor | None:
    """Find where a job stands with a set of queries; None if it has not begun."""
    mine = (cursors.c.job_name == job_name) & (cursors.c.query_set_hash == query_set_hash)
    row = (await reader.execute(select(cursors).where(mine))).first()
    return None if row is None else _make_cursor(row)


async def save_cursor(
    tx: Tx, job_name: str, query_set_hash: str, cursor: Cursor, now: datetime
) -> None:
    """Keep where a job stands, new or changed, and that it is so since now."""
    row = {
        "job_name": job_name,
        "query_set_hash": query_set_hash,
        "start_index": cursor.start_index,
        "is_exhausted": 1 if cursor.is_exhausted else 0,
        "last_updated_at": now,
    }
    await tx.save(cursors, [row], change=("start_index", "is_exhausted", "last_updated_at"))


async def reset_cursors(tx: Tx, job_name: str) -> int:
    """Forget all cursors of a job, so that it begins anew; say how many there were."""
    gone = await tx.execute(delete(cursors).where(cursors.c.job_name == job_name))
    return int(gone.rowcount)


async def list_cursors(reader: Reader | Tx, job_name: str | None = None) -> list[KeptCursor]:
    """List the cursors of all jobs, or of one."""
    query = select(cursors).order_by(cursors.c.job_name, cursors.c.query_set_hash)
    if job_name is not None:
        query = query.where(cursors.c.job_name == job_name)
    return [_make_cursor(row) for row in await reader.execute(query)]
