"""What routes are given."""

from typing import Annotated, cast

from fastapi import Depends, Request

from mimawari.edges.system import System


def system_of(request: Request) -> System:
    """Return the system that a request is made to."""
    return cast("System", request.app.state.system)


SystemOf = Annotated[System, Depends(system_of)]
"""Gives a route the system."""
