"""All that differs between SQLite, PostgreSQL and MariaDB, and nothing else."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import URL, Table, TextClause, event, text
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from mimawari.errors import BadInput

READ_ONLY = "mimawari_read_only"
IO_SECONDS = 30.0
CONNECT_SECONDS = 5.0

_CLAIMED = (
    "id, kind, args, dedupe_key, target, token, attempts, crashes, enqueued_at, priority, due_at"
)
_TAKE = (
    "SET state = 'processing', token = token + 1, attempts = attempts + 1,"
    " due_at = :lease_until, worker = :worker, reason = NULL, blocked_by = NULL"
)
_DUE = (
    "FROM jobs WHERE kind = :kind AND state = 'pending' AND due_at <= :now"
    " AND crashes {crashes} ORDER BY priority, due_at, id LIMIT :most"
)
_ENDED = "id, kind, args, dedupe_key, target, priority, token, attempts, worker, enqueued_at"


class Dialect:
    """What the ports ask of an engine; the rest of the store knows no engine's name."""

    driver: str
    writes_one_at_a_time = False
    """Whether the engine has one writer only, which is then best waited for in line."""
    claim_in_two = False
    """Whether a claim is a locking read and an update, for want of UPDATE … RETURNING."""
    lock = " FOR UPDATE"
    lock_free = " FOR UPDATE SKIP LOCKED"
    ignore = " ON CONFLICT DO NOTHING"
    announce: TextClause | None = None
    """What a transaction says so that other processes hear what it put."""
    migration_lock: str | None = None
    """What makes a second process wait while the tables are changed."""
    ear: Literal["file", "listen", "poll"]
    """How another process's announcement is heard."""

    def rows(self, **columns: str) -> str:
        """Return a table expression over the JSON array of arrays bound as :rows."""
        raise NotImplementedError

    def upsert(self, table: Table, values: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Return an insert that makes `change` instead where the primary key is taken."""
        raise NotImplementedError

    def claim(self, *, suspects: bool) -> tuple[str, ...]:
        """Return the statements that claim due jobs of one kind."""
        due = _DUE.format(crashes=">= :crashes" if suspects else "< :crashes")
        if self.claim_in_two:
            chosen = self.rows(id="text")
            return (
                f"SELECT {_CLAIMED} {due}{self.lock_free}",
                f"UPDATE jobs {_TAKE} WHERE id IN (SELECT id FROM {chosen} r)",
            )
        chosen = f"SELECT id {due}{self.lock_free}"
        return (f"UPDATE jobs {_TAKE} WHERE id IN ({chosen}) RETURNING {_CLAIMED}",)

    def end(self) -> tuple[str, ...]:
        """Return the statements that find jobs of ours, move them to the inbox and drop them."""
        columns = {"id": "text", "token": "int", "state": "text", "reason": "text"}
        rows = self.rows(**columns, blocked_by="text")
        ours = f"FROM {rows} r JOIN jobs j ON j.id = r.id AND j.token = r.token"
        kept = ", ".join(f"j.{name}" for name in _ENDED.split(", "))
        into = f"INSERT INTO inbox ({_ENDED}, state, reason, blocked_by, ended_at)"
        drop = f"DELETE FROM jobs WHERE id IN (SELECT id FROM {self.rows(id='text')} r)"
        return (
            f"SELECT j.id {ours} WHERE j.state = 'processing'{self.lock}",
            f"{into} SELECT {kept}, r.state, r.reason, r.blocked_by, :now {ours}",
            drop,
        )

    def contended(self, error: DBAPIError) -> bool:
        """Tell whether the same work may simply be done again."""
        raise NotImplementedError

    def prepare(self, engine: AsyncEngine) -> None:
        """Set an engine up for transactions as the ports expect them."""

    def options(self, url: URL) -> dict[str, Any]:
        """Return the arguments the engine is made with."""
        raise NotImplementedError


class Sqlite(Dialect):
    """SQLite: one file, one writer, WAL, every commit on the disk before it is said."""

    driver = "sqlite+aiosqlite"
    writes_one_at_a_time = True
    ear = "file"
    lock = lock_free = ""

    def rows(self, **columns: str) -> str:
        """Read the array with json_each."""
        parts = [f"value ->> '$[{at}]' AS {name}" for at, name in enumerate(columns)]
        return f"(SELECT {', '.join(parts)} FROM json_each(:rows))"

    def upsert(self, table: Table, values: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Use ON CONFLICT."""
        keys = list(table.primary_key)
        statement = sqlite.insert(table).values(dict(values))
        return statement.on_conflict_do_update(index_elements=keys, set_=dict(change))

    def contended(self, error: DBAPIError) -> bool:
        """Another process holds the file for longer than we wait."""
        return "locked" in str(error.orig) or "busy" in str(error.orig)

    def prepare(self, engine: AsyncEngine) -> None:
        """Take the write lock at BEGIN, so that no transaction fails half-way for want of it."""

        @event.listens_for(engine.sync_engine, "connect")
        def connected(connection: Any, _: object) -> None:
            connection.isolation_level = None
            cursor = connection.cursor()
            for pragma in (
                "busy_timeout = 15000",
                "journal_mode = WAL",
                "synchronous = FULL",
                "foreign_keys = ON",
                "cache_size = -32000",
            ):
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()

        @event.listens_for(engine.sync_engine, "begin")
        def begun(connection: Any) -> None:
            read_only = connection.get_execution_options().get(READ_ONLY)
            connection.exec_driver_sql("BEGIN" if read_only else "BEGIN IMMEDIATE")

    def options(self, url: URL) -> dict[str, Any]:
        """Pool a few connections to the file."""
        if not url.database or url.database == ":memory:":
            raise BadInput("SQLite needs a file: sqlite:///path/to/mimawari.db")
        # Transactions are always ended by us, so the pool need not roll back once more.
        return {"pool_size": 4, "max_overflow": 4, "pool_reset_on_return": None}


class Postgres(Dialect):
    """PostgreSQL: many writers, SKIP LOCKED, LISTEN and NOTIFY."""

    driver = "postgresql+asyncpg"
    lock = " FOR UPDATE OF j"
    ear = "listen"
    migration_lock = "SELECT pg_advisory_xact_lock(6279319)"
    announce = text("SELECT pg_notify('mimawari', :topic || ' ' || :sender)")

    def rows(self, **columns: str) -> str:
        """Read the array with json_array_elements."""
        kinds = {"text": "", "int": "::bigint"}
        parts = [
            f"(value ->> {at}){kinds[kind]} AS {name}"
            for at, (name, kind) in enumerate(columns.items())
        ]
        return f"(SELECT {', '.join(parts)} FROM json_array_elements(CAST(:rows AS json)))"

    def upsert(self, table: Table, values: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Use ON CONFLICT."""
        keys = list(table.primary_key)
        statement = postgresql.insert(table).values(dict(values))
        return statement.on_conflict_do_update(index_elements=keys, set_=dict(change))

    def contended(self, error: DBAPIError) -> bool:
        """A deadlock or a failed serialisation."""
        return getattr(error.orig, "sqlstate", None) in {"40001", "40P01"}

    def options(self, url: URL) -> dict[str, Any]:
        """Bound every connection and every statement in time."""
        del url
        times = {"timeout": CONNECT_SECONDS, "command_timeout": IO_SECONDS}
        return {"pool_size": 8, "max_overflow": 8, "pool_timeout": 10, "connect_args": times}


class Mariadb(Dialect):
    """MariaDB: many writers and SKIP LOCKED, but no UPDATE … RETURNING and no NOTIFY."""

    driver = "mariadb+asyncmy"
    claim_in_two = True
    ear = "poll"
    migration_lock = "SELECT GET_LOCK('mimawari_migration', 60)"
    announce = text(
        "INSERT INTO bells (topic, rung, sender) VALUES (:topic, 1, :sender)"
        " ON DUPLICATE KEY UPDATE rung = rung + 1, sender = :sender"
    )
    ignore = " ON DUPLICATE KEY UPDATE id = jobs.id"

    def rows(self, **columns: str) -> str:
        """Read the array with JSON_TABLE."""
        kinds = {"text": "LONGTEXT", "int": "BIGINT"}
        parts = [
            f"{name} {kinds[kind]} PATH '$[{at}]'"
            for at, (name, kind) in enumerate(columns.items())
        ]
        return f"JSON_TABLE(:rows, '$[*]' COLUMNS ({', '.join(parts)}))"

    def upsert(self, table: Table, values: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Use ON DUPLICATE KEY UPDATE."""
        return mysql.insert(table).values(dict(values)).on_duplicate_key_update(dict(change))

    def contended(self, error: DBAPIError) -> bool:
        """A deadlock, a lock waited for too long, or a row changed since it was read."""
        arguments: Sequence[Any] = getattr(error.orig, "args", ())
        return bool(arguments) and arguments[0] in {1020, 1205, 1213}

    def options(self, url: URL) -> dict[str, Any]:
        """Read what is committed, as on PostgreSQL, so that no gap is locked."""
        del url
        times = {"connect_timeout": CONNECT_SECONDS, "charset": "utf8mb4"}
        return {
            "pool_size": 8,
            "max_overflow": 8,
            "pool_timeout": 10,
            "isolation_level": "READ COMMITTED",
            "connect_args": times,
        }


_DIALECTS: Mapping[str, type[Dialect]] = {
    "sqlite": Sqlite,
    "postgresql": Postgres,
    "postgres": Postgres,
    "mariadb": Mariadb,
    "mysql": Mariadb,
}


def dialect_of(url: URL) -> Dialect:
    """Choose the dialect for a database URL."""
    name = url.get_backend_name() if url.drivername != "postgres" else "postgres"
    if name not in _DIALECTS:
        raise BadInput(
            f"{name!r} is no database we know; use sqlite:///…, postgresql://… or mariadb://…"
        )
    return _DIALECTS[name]()
