"""Defaults of a server that would change what we store, compare or wait for, if we relied on them.

Every setting here can be overridden by a session, which the program has to do. The servers of the
tests run with them, so that no test passes by the kindness of a default.
"""

from collections.abc import Mapping

MARIADB: Mapping[str, str] = {
    "character-set-server": "latin1",
    "collation-server": "latin1_swedish_ci",
    # What a client says of its character set while it logs in is ignored.
    "character-set-client-handshake": "OFF",
    # Not strict: what does not fit is cut or replaced with a warning that nobody reads.
    "sql-mode": "ANSI_QUOTES,PIPES_AS_CONCAT,IGNORE_SPACE,NO_BACKSLASH_ESCAPES,"
    "PAD_CHAR_TO_FULL_LENGTH,EMPTY_STRING_IS_NULL,NO_UNSIGNED_SUBTRACTION,HIGH_NOT_PRECEDENCE",
    "default-time-zone": "+09:00",
    "group-concat-max-len": "16",
    "max-sort-length": "64",
    "transaction-isolation": "SERIALIZABLE",
    "transaction-read-only": "ON",
    "autocommit": "OFF",
    "completion-type": "CHAIN",
    "default-storage-engine": "MyISAM",
    "sql-safe-updates": "ON",
    "max-statement-time": "20",
    "div-precision-increment": "0",
}

POSTGRES: Mapping[str, str] = {
    "timezone": "Asia/Tokyo",
    "datestyle": "SQL, DMY",
    "intervalstyle": "sql_standard",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "client_encoding": "LATIN1",
    "standard_conforming_strings": "off",
    "bytea_output": "escape",
    "extra_float_digits": "-15",
    "array_nulls": "off",
    "transform_null_equals": "on",
    "synchronous_commit": "off",
    "statement_timeout": "20s",
    "lock_timeout": "10s",
    "idle_session_timeout": "20s",
}
