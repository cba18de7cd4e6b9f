"""Routes that list and end sessions of the pages."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field

from mimawari.app.http.envelope import errors
from mimawari.edges.routes import SystemOf
from mimawari.errors import NotFound

router = APIRouter(prefix="/api/sessions")

SessionId = Annotated[str, Path(pattern="^[0-9a-f-]{36}$", description="A session's id.")]


class SessionOut(BaseModel):
    """A session of the pages."""

    id: str
    key_number: int = Field(description="Which of the API keys it was begun with, from 1 on.")
    made_at: datetime
    seen_at: datetime = Field(description="To within five minutes.")
    address: str = Field(description="Where it was seen last.")
    agent: str = Field(description="What the browser calls itself.")


class SessionsOut(BaseModel):
    """The sessions, the one that was seen last first."""

    sessions: list[SessionOut]


class EndedOut(BaseModel):
    """How many sessions were ended."""

    ended: int


@router.get("", responses=errors())
async def list_sessions(system: SystemOf) -> SessionsOut:
    """List the sessions of the pages."""
    found = await system.store.sessions.list()
    return SessionsOut(
        sessions=[SessionOut.model_validate(one, from_attributes=True) for one in found]
    )


@router.delete("", responses=errors())
async def end_sessions(system: SystemOf) -> EndedOut:
    """End all sessions; API keys go on."""
    return EndedOut(ended=await system.store.sessions.end_without(()))


@router.delete("/{session_id}", responses=errors(404))
async def end_session(system: SystemOf, session_id: SessionId) -> EndedOut:
    """End a session for good."""
    if not await system.store.sessions.end(session_id):
        raise NotFound(f"no session goes by the id {session_id}")
    return EndedOut(ended=1)
