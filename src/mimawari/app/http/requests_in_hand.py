"""Notes which requests a process has in hand, so that they are known if it stands still."""

import hashlib

from mimawari.app.http.edge import App, Message, Receive, Send
from mimawari.app.process.record import RunningRecord

KEYS = frozenset({b"x-api-key", b"x-internal-api-key"})


def noting(app: App, record: RunningRecord | None) -> App:
    """Wrap an ASGI application so that its requests are noted, where there is a record."""
    if record is None:
        return app

    async def note_request(scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        with record.holding(f"{scope['method']} {scope['path']} {_name_client(scope)}"):
            await app(scope, receive, send)

    return note_request


def _name_client(scope: Message) -> str:
    """Name a client as limits do: a digest of its key, which is never written, or its address."""
    given = next((value for name, value in scope["headers"] if name.lower() in KEYS), None)
    if given is None:
        return f"address {(scope.get('client') or ('unknown', 0))[0]}"
    return f"key {hashlib.sha256(given).hexdigest()[:16]}"
