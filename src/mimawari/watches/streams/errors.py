"""What the streams watch refuses, and in which words; nothing of how that is sent."""

from mimawari.errors import BadInput

CODES = {
    "unauthorized": "UNAUTHORIZED",
    "forbidden": "FORBIDDEN",
    "wrong_host": "WRONG_HOST",
    "rate_limited": "RATE_LIMIT_EXCEEDED",
    "internal": "INTERNAL_ERROR",
    "bad_json": "INVALID_CONFIG",
    "bad_input": "INVALID_CONFIG",
}
"""The words of the description, by those that the edge uses."""
INVALID_CONFIG, INVALID_URL = "INVALID_CONFIG", "INVALID_URL"
MEANINGS = {
    400: "an address or a setting cannot be used",
    404: "no monitor goes by that id",
    409: "the stream is monitored already, or its monitor is over",
    429: "there are as many monitors as there may be, or requests come too fast",
    500: "a bug of ours",
}
"""What the errors of these routes mean; what cannot be used is 400, and nothing is 422."""


class Duplicate(BadInput):
    """The stream is monitored already."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="DUPLICATE_MONITOR")


class TooMany(BadInput):
    """There are as many as there may be, or they come too fast."""


class Ended(BadInput):
    """The monitor is over, and nothing changes about it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="MONITOR_ENDED")


class Behind(BadInput):
    """The monitor has come further than its runner says."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="INVALID_TRANSITION")


class Fenced(BadInput):
    """Another pod has the monitor by now."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="MONITOR_CLAIMED")
