"""The ports on SQL: SQLite in one file, PostgreSQL or MariaDB for many machines."""

from mimawari.store.sql.store import SqlStore

__all__ = ["SqlStore"]
