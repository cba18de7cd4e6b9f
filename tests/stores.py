"""Stores at an address: of SQL alone, or of SQL and Redis, as one word that may be passed on."""

from mimawari.kernel.ports import Clock
from mimawari.store.redis import RedisStore
from mimawari.store.redis.link import RedisLink
from mimawari.store.sql import SqlStore

BESIDE = " redis "
"""Stands between the address of a database and that of the Redis beside it."""


def open_store(url: str, clock: Clock) -> SqlStore:
    """Open the store at an address."""
    database, _, redis = url.partition(BESIDE)
    return RedisStore(database, RedisLink(redis), clock) if redis else SqlStore(database, clock)


def open_again(store: SqlStore, clock: Clock) -> SqlStore:
    """Open a second store at the same place, as another process would have it."""
    return open_store(address_of(store), clock)


def address_of(store: SqlStore) -> str:
    """Tell the address of a store."""
    database = store.database.url.render_as_string(hide_password=False)
    return f"{database}{BESIDE}{store.link.url}" if isinstance(store, RedisStore) else database
