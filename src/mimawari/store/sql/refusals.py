"""Why a database that answers refuses what it is asked for, read from the drivers' errors."""

from enum import StrEnum

from sqlalchemy.exc import DBAPIError


class Refusal(StrEnum):
    """A reason that an operator can remove."""

    READ_ONLY = "it is read-only"
    NO_SPACE = "it has no space left"
    RIGHTS = "its user lacks a right"


_SQLSTATES = {
    "25006": Refusal.READ_ONLY,
    "53100": Refusal.NO_SPACE,
    "42501": Refusal.RIGHTS,
}
_MARIADB = {
    **dict.fromkeys((1036, 1290, 1792), Refusal.READ_ONLY),
    **dict.fromkeys((1021, 1026, 1114), Refusal.NO_SPACE),
    **dict.fromkeys((1044, 1142, 1143, 1227, 1370), Refusal.RIGHTS),
}
_SQLITE = {
    "readonly database": Refusal.READ_ONLY,
    "disk is full": Refusal.NO_SPACE,
}


def refusal_of(error: BaseException | None) -> Refusal | None:
    """Return why the database refused, or None where the error means something else."""
    original = error.orig if isinstance(error, DBAPIError) else error
    if original is None:
        return None
    # MariaDB has a number for each reason, and one SQLSTATE for many of them.
    if original.args and isinstance(original.args[0], int):
        return _MARIADB.get(original.args[0])
    if state := getattr(original, "sqlstate", None):
        return _SQLSTATES.get(state)
    words = str(original)
    return next((refusal for part, refusal in _SQLITE.items() if part in words), None)
