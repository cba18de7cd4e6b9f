"""Which routes of the internal API are open to whom."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request

from mimawari.errors import Forbidden
from mimawari.kernel.rights import Caller

T = TypeVar("T", bound=Callable[..., Any])

INSTALLATION, POD = "installation", "pod"
_OPEN_TO = "__open_to__"


def open_to(*callers: str) -> Callable[[T], T]:
    """Open an internal route to some callers; a route without this refuses all of them."""

    def mark(endpoint: T) -> T:
        setattr(endpoint, _OPEN_TO, frozenset(callers))
        return endpoint

    return mark


def find_caller(request: Request) -> Caller:
    """Return who calls, as the edge found out."""
    caller: Caller = request.scope["state"]["caller"]
    return caller


CallerOf = Annotated[Caller, Depends(find_caller)]
"""Gives a route its caller."""


def check_route(request: Request, caller: CallerOf) -> None:
    """Refuse a caller to whom the route is not open."""
    opened: frozenset[str] = getattr(request.scope["route"].endpoint, _OPEN_TO, frozenset())
    if (INSTALLATION if caller.pod is None else POD) in opened:
        return
    if caller.pod is None:
        raise Forbidden(
            "the installation's key reports by PUT /internal/v1/monitors/{id}/status and opens"
            " nothing else; pods have tokens of their own"
        )
    raise Forbidden("a pod's token does not open this route")
