"""What every connection sets for itself, so that no default of a server or database matters.

A setting belongs here if a session may change it and it alters what is stored, compared, returned
or waited for. What a session cannot change is checked by `contract`.
"""

from collections.abc import Mapping

IDLE_SECONDS = 15
"""A process that hangs in the middle of a transaction holds what it has locked no longer."""
BUSY_SECONDS = 15.0
"""How long background work waits for the write lock of a file."""
CHARSET, COLLATION = "utf8mb4", "utf8mb4_nopad_bin"
_LARGEST = 2**64 - 1

_MARIADB: Mapping[str, str | int] = {
    # Strict, and without what changes how a statement is read or a value returned.
    "sql_mode": "'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    "time_zone": "'+00:00'",
    "timestamp": "DEFAULT",
    "tx_read_only": 0,
    "completion_type": "'NO_CHAIN'",
    "default_storage_engine": "InnoDB",
    "innodb_strict_mode": 1,
    "foreign_key_checks": 1,
    "unique_checks": 1,
    "check_constraint_checks": 1,
    "sql_auto_is_null": 0,
    "sql_safe_updates": 0,
    "sql_big_selects": 1,
    "sql_select_limit": _LARGEST,
    "max_sort_length": 1024,
    "group_concat_max_len": 1024 * 1024,
    "div_precision_increment": 4,
    # The program has time limits of its own, which a migration may exceed.
    "max_statement_time": 0,
    "innodb_lock_wait_timeout": 50,
    "wait_timeout": 8 * 3600,
    "idle_transaction_timeout": IDLE_SECONDS,
}

POSTGRES: Mapping[str, str] = {
    "client_encoding": "UTF8",
    "TimeZone": "UTC",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "standard_conforming_strings": "on",
    "backslash_quote": "safe_encoding",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "array_nulls": "on",
    "transform_null_equals": "off",
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    # The program has time limits of its own, which a migration may exceed.
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": f"{IDLE_SECONDS}s",
    # As on any disk without moving parts: a batch is looked up by index, not by a scan.
    "random_page_cost": "1.1",
}
"""Sent with the log-in, which overrides the defaults of server, database and role."""

POSTGRES_AFTER_LOGIN = (
    # Not known to every version, which would refuse the log-in.
    "SELECT set_config(name, '0', false)"
    " FROM unnest(ARRAY['idle_session_timeout', 'transaction_timeout']) name"
    " WHERE current_setting(name, true) IS NOT NULL"
    # A commit that has returned must survive a crash; stronger settings than `on` are kept.
    " UNION ALL SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'"
)

SQLITE = (
    "encoding = 'UTF-8'",
    f"busy_timeout = {int(BUSY_SECONDS * 1000)}",
    "journal_mode = WAL",
    "synchronous = FULL",
    "foreign_keys = ON",
    "ignore_check_constraints = OFF",
    "recursive_triggers = OFF",
    "reverse_unordered_selects = OFF",
    "case_sensitive_like = OFF",
    "query_only = OFF",
    "cache_size = -32000",
)


def mariadb_statement() -> str:
    """Return the one statement that a connection to MariaDB begins with."""
    settings = [f"SESSION {name} = {value}" for name, value in _MARIADB.items()]
    return ", ".join([f"SET NAMES {CHARSET} COLLATE {COLLATION}", *settings])
