"""All that differs between SQLite, PostgreSQL and MariaDB, and nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sqlalchemy import (
    URL,
    Boolean,
    Column,
    Engine,
    Float,
    Integer,
    Table,
    TextClause,
    TypeDecorator,
    event,
    text,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from mimawari.errors import BadInput
from mimawari.store.sql import session_settings
from mimawari.store.sql.link import LOCK_SECONDS, READ_ONLY, FileLink, Link, ServerLink
from mimawari.store.sql.session_settings import CHARSET, COLLATION

CONNECT_SECONDS = 5.0
POOL: Mapping[str, Any] = {"pool_size": 8, "max_overflow": 8, "pool_timeout": 10}

_CLAIMED = (
    "id, kind, args, dedupe_key, target, token, attempts, crashes, stops, enqueued_at, priority,"
    " due_at"
)
_DUE = (
    "FROM jobs WHERE kind = :kind AND state = 'pending' AND due_at <= :now"
    " AND crashes {crashes} ORDER BY priority, due_at, id LIMIT :most"
)
_ENDED = "id, kind, dedupe_key, target, priority, token, attempts, worker, enqueued_at"
_INTO_INBOX = f"INSERT INTO inbox ({_ENDED}, args, state, reason, blocked_by, ended_at)"
MOST_KEPT = 4000
# What a job was told is needed again only if it failed; a long message is not kept for nothing.
_KEPT_ARGS = (
    f"CASE WHEN {{state}} = 'done' AND length({{args}}) > {MOST_KEPT}"
    ' THEN \'{{"cut": "too long to be kept once it was done"}}\' ELSE {args} END'
)
_HELD = {"id": "text", "token": "int"}
_END = {"id": "text", "token": "int", "state": "text", "reason": "text", "blocked_by": "text"}


def _take(prefix: str = "") -> str:
    """Set a job's columns to what a claim makes of them."""
    return (
        f"SET {prefix}state = 'processing', {prefix}token = {prefix}token + 1,"
        f" {prefix}attempts = {prefix}attempts + 1, {prefix}due_at = :lease_until,"
        f" {prefix}worker = :worker, {prefix}reason = NULL, {prefix}blocked_by = NULL"
    )


def kind_of(column: Column[Any]) -> str:
    """Tell how a column's values are written in JSON: as text, int, float or bool."""
    stored = column.type.impl if isinstance(column.type, TypeDecorator) else column.type
    if isinstance(stored, Boolean):
        return "bool"
    if isinstance(stored, Integer):
        return "int"
    return "float" if isinstance(stored, Float) else "text"


def _columns(names: str, table: str) -> str:
    return ", ".join(f"{table}.{name}" for name in names.split(", "))


class Dialect(ABC):
    """What the ports ask of an engine; the rest of the store knows no engine's name."""

    driver: str
    writes_one_at_a_time = False
    """Whether the engine has one writer only, which is then best waited for in line."""
    lock = " FOR UPDATE OF j"
    lock_free = " FOR UPDATE SKIP LOCKED"
    join = "JOIN"
    insert_word = "INSERT INTO"
    ignore_word = " ON CONFLICT DO NOTHING"
    announce: TextClause | None = None
    """What a transaction says so that other processes hear what it put."""
    migration_lock: tuple[str, str] | None = None
    """What makes a second process wait while the tables are changed, and what lets it go on."""
    ear: Literal["file", "listen", "poll"]
    """How another process's announcement is heard."""

    @abstractmethod
    def rows(self, **columns: str) -> str:
        """Return a table expression over the JSON array of arrays bound as :rows."""

    taken = "ON CONFLICT ({keys}) DO UPDATE SET"
    given = "excluded.{name}"

    def save(
        self, table: Table, names: Sequence[str], change: Sequence[str], keys: Sequence[str]
    ) -> str:
        """Return what inserts the rows bound as :rows, or changes those whose key is taken."""
        columns = {name: kind_of(table.c[name]) for name in names}
        listed = ", ".join(names)
        # WHERE keeps SQLite from reading ON CONFLICT as the ON of a join.
        rows = f"SELECT {listed} FROM {self.rows(**columns)} r WHERE 1 = 1"
        insert = f"INSERT INTO {table.name} ({listed}) {rows}"
        if not change:
            return insert
        taken = ", ".join(keys or [column.name for column in table.primary_key])
        changes = ", ".join(f"{name} = {self.given.format(name=name)}" for name in change)
        return f"{insert} {self.taken.format(keys=taken)} {changes}"

    @abstractmethod
    def upsert(self, table: Table, values: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Return an insert that makes `change` instead where the primary key is taken."""

    @abstractmethod
    def insert_new(self, table: Table, values: Mapping[str, Any]) -> Any:
        """Return an insert that does nothing where the primary key is taken."""

    def claim(self, *, suspects: bool) -> tuple[str, ...]:
        """Return what claims due jobs of one kind: one statement, or a choice and a mark."""
        return (f"SELECT {_CLAIMED} {self._due(suspects=suspects)}{self.lock_free}", self._mark())

    def claim_known(self) -> tuple[str, ...]:
        """Return what claims the pending jobs bound as :rows (id, token), as `claim` does."""
        chosen = f"SELECT {_columns(_CLAIMED, 'j')} FROM {self._known()}"
        return (f"{chosen} WHERE j.state = 'pending'{self.lock}", self._mark())

    def _known(self) -> str:
        rows = self.rows(**_HELD)
        return f"{rows} r {self.join} jobs j ON j.id = r.id AND j.token = r.token"

    def _due(self, *, suspects: bool) -> str:
        return _DUE.format(crashes=">= :crashes" if suspects else "< :crashes")

    def _mark(self) -> str:
        return f"UPDATE jobs {_take()} WHERE id IN (SELECT id FROM {self.rows(id='text')} r)"

    def end(self) -> tuple[str, ...]:
        """Return what moves jobs of ours to the inbox: one statement, or find, keep and drop.

        The first of them returns the ids.
        """
        ours = f"FROM {self.rows(**_END)} r {self.join} jobs j ON j.id = r.id AND j.token = r.token"
        args = _KEPT_ARGS.format(state="r.state", args="j.args")
        kept = f"{_columns(_ENDED, 'j')}, {args}, r.state, r.reason, r.blocked_by, :now"
        return (
            f"SELECT j.id {ours} WHERE j.state = 'processing'{self.lock}",
            f"{_INTO_INBOX} SELECT {kept} {ours}",
            self._drop(),
        )

    def _drop(self) -> str:
        return f"DELETE FROM jobs WHERE id IN (SELECT id FROM {self.rows(id='text')} r)"

    def extend(self) -> str:
        """Return what lengthens the leases of jobs of ours."""
        return (
            "UPDATE jobs SET due_at = :until WHERE state = 'processing'"
            f" AND (id, token) IN (SELECT id, token FROM {self.rows(**_HELD)} r)"
        )

    @abstractmethod
    def contended(self, error: DBAPIError) -> bool:
        """Tell whether the same work may simply be done again."""

    def prepare(self, engine: Engine) -> None:  # noqa: B027 - servers need nothing set up
        """Set an engine up for transactions as the ports expect them."""

    @abstractmethod
    def link(self, url: URL) -> Link:
        """Return the way to a database of this engine."""


class Sqlite(Dialect):
    """SQLite: one file, one writer, WAL, every commit on the disk before it is said."""

    driver = "sqlite"
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

    def insert_new(self, table: Table, values: Mapping[str, Any]) -> Any:
        """Use ON CONFLICT."""
        return sqlite.insert(table).values(dict(values)).on_conflict_do_nothing()

    def contended(self, error: DBAPIError) -> bool:
        """Another process holds the file for longer than we wait."""
        return "locked" in str(error.orig) or "busy" in str(error.orig)

    def prepare(self, engine: Engine) -> None:
        """Take the write lock at BEGIN, so that no transaction fails half-way for want of it."""

        @event.listens_for(engine, "connect")
        def connected(connection: Any, _: object) -> None:
            connection.isolation_level = None
            cursor = connection.cursor()
            for pragma in session_settings.SQLITE:
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()

        @event.listens_for(engine, "begin")
        def begun(connection: Any) -> None:
            options = connection.get_execution_options()
            if options.get(READ_ONLY):
                connection.exec_driver_sql("BEGIN")
                return
            milliseconds = int(options.get(LOCK_SECONDS, session_settings.BUSY_SECONDS) * 1000)
            connection.exec_driver_sql(f"PRAGMA busy_timeout = {milliseconds}")
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    def link(self, url: URL) -> Link:
        """Reach the file in threads."""
        if not url.database or url.database == ":memory:":
            raise BadInput("SQLite needs a file: sqlite:///path/to/mimawari.db")
        return FileLink(url, {"connect_args": {"check_same_thread": False}})


class Postgres(Dialect):
    """PostgreSQL: many writers, SKIP LOCKED, LISTEN and NOTIFY."""

    driver = "postgresql+asyncpg"
    ear = "listen"
    migration_lock = ("SELECT pg_advisory_lock(6279319)", "SELECT pg_advisory_unlock(6279319)")
    announce = text("SELECT pg_notify('mimawari', :topic || ' ' || :sender)")

    def rows(self, **columns: str) -> str:
        """Read the array with json_array_elements."""
        kinds = {"text": "", "int": "::bigint", "float": "::float8", "bool": "::boolean"}
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

    def insert_new(self, table: Table, values: Mapping[str, Any]) -> Any:
        """Use ON CONFLICT."""
        return postgresql.insert(table).values(dict(values)).on_conflict_do_nothing()

    def claim(self, *, suspects: bool) -> tuple[str, ...]:
        """Choose and mark in one statement."""
        due = f"SELECT id, due_at {self._due(suspects=suspects)}{self.lock_free}"
        columns = _columns(_CLAIMED.removesuffix(", due_at"), "jobs")
        marked = f"UPDATE jobs {_take()} FROM due WHERE jobs.id = due.id"
        return (f"WITH due AS ({due}) {marked} RETURNING {columns}, due.due_at",)

    def claim_known(self) -> tuple[str, ...]:
        """Mark in one statement."""
        rows = self.rows(id="text", seen="int")
        ours = "jobs.id = r.id AND jobs.token = r.seen AND jobs.state = 'pending'"
        columns = _columns(_CLAIMED, "jobs")
        return (f"UPDATE jobs {_take()} FROM {rows} r WHERE {ours} RETURNING {columns}",)

    def end(self) -> tuple[str, ...]:
        """Move in one statement."""
        gone = (
            f"DELETE FROM jobs j USING {self.rows(**_END)} r WHERE j.id = r.id"
            " AND j.token = r.token AND j.state = 'processing' RETURNING"
            f" {_columns(_ENDED, 'j')}, j.args, r.state, r.reason, r.blocked_by"
        )
        args = _KEPT_ARGS.format(state="state", args="args")
        kept = f"{_ENDED}, {args}, state, reason, blocked_by, :now"
        return (f"WITH gone AS ({gone}) {_INTO_INBOX} SELECT {kept} FROM gone RETURNING id",)

    def contended(self, error: DBAPIError) -> bool:
        """A deadlock or a failed serialisation."""
        return getattr(error.orig, "sqlstate", None) in {"40001", "40P01"}

    def prepare(self, engine: Engine) -> None:
        """Set on each connection what cannot be sent with the log-in."""

        @event.listens_for(engine, "connect")
        def connected(connection: Any, _: object) -> None:
            cursor = connection.cursor()
            cursor.execute(session_settings.POSTGRES_AFTER_LOGIN)
            cursor.close()
            connection.commit()

    def link(self, url: URL) -> Link:
        """Reach the server over asyncpg."""
        driver = {"timeout": CONNECT_SECONDS, "server_settings": dict(session_settings.POSTGRES)}
        return ServerLink(url, {**POOL, "connect_args": driver})


class Mariadb(Dialect):
    """MariaDB: many writers and SKIP LOCKED, but no UPDATE … RETURNING and no NOTIFY."""

    driver = "mariadb+asyncmy"
    lock = " FOR UPDATE"
    # Without this word the whole table is scanned, and locked, to find a few jobs.
    join = "STRAIGHT_JOIN"
    ear = "poll"
    migration_lock = (
        "SELECT GET_LOCK('mimawari_migration', 3600)",
        "SELECT RELEASE_LOCK('mimawari_migration')",
    )
    announce = text(
        "INSERT INTO bells (topic, rung, sender) VALUES (:topic, 1, :sender)"
        " ON DUPLICATE KEY UPDATE rung = rung + 1, sender = :sender"
    )
    # IGNORE also cuts what is too long, which a job's own checks have refused before.
    insert_word = "INSERT IGNORE INTO"
    ignore_word = ""
    taken = "ON DUPLICATE KEY UPDATE"
    given = "VALUES({name})"

    def rows(self, **columns: str) -> str:
        """Read the array with JSON_TABLE."""
        # Without its character set, the text is read in that of the database.
        exact = f"LONGTEXT CHARACTER SET {CHARSET} COLLATE {COLLATION}"
        kinds = {"text": exact, "int": "BIGINT", "float": "DOUBLE", "bool": "BOOLEAN"}
        parts = [
            f"{name} {kinds[kind]} PATH '$[{at}]'"
            for at, (name, kind) in enumerate(columns.items())
        ]
        return f"JSON_TABLE(:rows, '$[*]' COLUMNS ({', '.join(parts)}))"

    def upsert(self, table: Table, values: Mapping[str, Any], change: Mapping[str, Any]) -> Any:
        """Use ON DUPLICATE KEY UPDATE."""
        return mysql.insert(table).values(dict(values)).on_duplicate_key_update(dict(change))

    def insert_new(self, table: Table, values: Mapping[str, Any]) -> Any:
        """Use INSERT IGNORE."""
        return mysql.insert(table).values(dict(values)).prefix_with("IGNORE")

    def _mark(self) -> str:
        return f"UPDATE {self._rows_and_jobs(id='text')} {_take('j.')}"

    def _drop(self) -> str:
        return f"DELETE j FROM {self._rows_and_jobs(id='text')}"

    def extend(self) -> str:
        """Join the rows first."""
        joined = f"{self._rows_and_jobs(**_HELD)} AND j.token = r.token"
        return f"UPDATE {joined} SET j.due_at = :until WHERE j.state = 'processing'"

    def _rows_and_jobs(self, **columns: str) -> str:
        return f"{self.rows(**columns)} r {self.join} jobs j ON j.id = r.id"

    def contended(self, error: DBAPIError) -> bool:
        """A deadlock, a lock waited for too long, or a row changed since it was read."""
        arguments: Sequence[Any] = getattr(error.orig, "args", ())
        return bool(arguments) and arguments[0] in {1020, 1205, 1213}

    def link(self, url: URL) -> Link:
        """Reach the server over asyncmy; read what is committed, so that no gap is locked."""
        driver = {
            "connect_timeout": CONNECT_SECONDS,
            "charset": CHARSET,
            "init_command": session_settings.mariadb_statement(),
        }
        level = {"isolation_level": "READ COMMITTED"}
        return ServerLink(url, {**POOL, **level, "connect_args": driver})


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
