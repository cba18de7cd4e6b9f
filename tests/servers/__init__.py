"""Private PostgreSQL, MariaDB and Redis servers for tests and benchmarks.

Each server listens on loopback only, keeps all its files in one temporary folder and is watched
over by a guard: a small process that ends the server and removes the folder as soon as the
process that asked for the server closes it or dies, however it dies.
"""

import contextlib
from collections.abc import Iterator

from tests.servers.engines import MariadbServer, PostgresServer, RedisServer
from tests.servers.server import Server, ServerError

__all__ = [
    "BACKENDS",
    "ENGINES",
    "Server",
    "ServerError",
    "mariadb_server",
    "postgres_server",
    "redis_server",
]

ENGINES = ("sqlite", "postgresql", "mariadb")
"""What a store of ours may stand on."""

BACKENDS = (*ENGINES, "redis")
"""The same, and Redis beside PostgreSQL."""


@contextlib.contextmanager
def _running(kind: type[Server], *, durable: bool, hostile: bool = True) -> Iterator[Server]:
    """Run a server for as long as the block lasts and leave nothing behind."""
    server = kind(durable=durable, hostile=hostile)
    try:
        server.open()
        yield server
    finally:
        server.close()


def postgres_server(
    *, durable: bool = True, hostile: bool = True
) -> contextlib.AbstractContextManager[Server]:
    """Run a PostgreSQL server; unless durable, its data survive its crash but not the machine's.

    Unless hostile, its defaults are those of its makers.
    """
    return _running(PostgresServer, durable=durable, hostile=hostile)


def mariadb_server(
    *, durable: bool = True, hostile: bool = True
) -> contextlib.AbstractContextManager[Server]:
    """Run a MariaDB server; unless durable, its data survive its crash but not the machine's.

    Unless hostile, its defaults are those of its makers.
    """
    return _running(MariadbServer, durable=durable, hostile=hostile)


def redis_server(*, durable: bool = True) -> contextlib.AbstractContextManager[Server]:
    """Run a Redis server; unless durable, its data survive its crash but not the machine's."""
    return _running(RedisServer, durable=durable)
