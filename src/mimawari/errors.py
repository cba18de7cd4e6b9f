"""Every error of ours, and so every way a job or a request can end badly.

MimawariError
├── JobError                what a task says about its own future
│   ├── Gone                the thing is gone for good: never again
│   ├── Blocked             the site turned us away: its breaker counts it
│   ├── Transient           it may work later: the kind's backoff
│   ├── Invalid             the page was not understood: dead letters, page kept
│   └── Wait                not its turn yet: back to the queue, no attempt used
├── LeaseLost               the job is not ours any more: nothing was changed
├── StoreDown               the database did not answer: nothing was lost
└── BadInput                a person can mend this, and the sentence says how
    ├── NotFound            nothing goes by that name
    └── Forbidden           the key is good, and not for this
"""

from datetime import datetime


class MimawariError(Exception):
    """The root of every error of ours."""


class JobError(MimawariError):
    """What a task raises to decide its job's future."""


class Gone(JobError):
    """The thing asked for is gone for good."""


class Blocked(JobError):
    """A site turned us away; its breaker decides how long we stay away.

    No attempt is used up unless the job's own page was `asked` for.
    """

    def __init__(
        self, site: str, message: str, *, until: datetime | None = None, asked: bool = True
    ) -> None:
        super().__init__(message)
        self.site = site
        self.until = until
        self.asked = asked


class Transient(JobError):
    """It did not work now and may work later, not before `until` where the site said so.

    It is `unsent` where the request has certainly not reached the site.
    """

    def __init__(
        self, message: str, *, until: datetime | None = None, unsent: bool = False
    ) -> None:
        super().__init__(message)
        self.until = until
        self.unsent = unsent


class Invalid(JobError):
    """A page was not understood; it is kept for a person to see."""

    def __init__(self, message: str, *, page: bytes | None = None) -> None:
        super().__init__(message)
        self.page = page


class Wait(JobError):
    """The job's turn has not come; it goes back to the queue and uses up no attempt."""

    def __init__(self, until: datetime, reason: str, blocked_by: str) -> None:
        super().__init__(f"{reason}, until {until.isoformat(timespec='seconds')}")
        self.until = until
        self.reason = reason
        self.blocked_by = blocked_by


class LeaseLost(MimawariError):
    """The job belongs to somebody else by now; the commit was refused whole."""


class StoreDown(MimawariError):
    """The database did not answer; what was accepted before is safe."""


class BadInput(MimawariError):
    """A value that a person gave cannot be used; the message says what to do."""

    def __init__(self, message: str, *, code: str = "bad_input") -> None:
        super().__init__(message)
        self.code = code


class NotFound(BadInput):
    """Nothing goes by the name that was given."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="not_found")


class Forbidden(BadInput):
    """The caller is authenticated and has no right to this."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="forbidden")
