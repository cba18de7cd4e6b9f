"""SQLite files that have all their tables already, for tests of what is done with them."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from mimawari.kernel.clock import VirtualClock
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade

_made: list[bytes] = []


async def lay_tables(path: Path) -> str:
    """Write a database with all its tables, made once a process, unless there is one already."""
    if not _made:
        with TemporaryDirectory() as folder:
            file = Path(folder, "made.db")
            store = SqlStore(f"sqlite:///{file}", VirtualClock())
            await upgrade(store.database)
            await store.close()
            _made.append(await asyncio.to_thread(file.read_bytes))
    if not await asyncio.to_thread(path.exists):
        await asyncio.to_thread(path.write_bytes, _made[0])
    return f"sqlite:///{path}"
