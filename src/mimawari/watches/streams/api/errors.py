"""How the routes of monitors refuse, in the words of their description."""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute

from mimawari.errors import BadInput, Forbidden, NotFound
from mimawari.text import one_line
from mimawari.watches.streams.errors import (
    CODES,
    INVALID_CONFIG,
    INVALID_URL,
    Behind,
    Duplicate,
    Ended,
    Fenced,
    TooMany,
)

_URLS = {"stream_url", "callback_url"}
_STATUSES = {
    Forbidden: 403,
    NotFound: 404,
    Duplicate: 409,
    Ended: 409,
    Behind: 409,
    Fenced: 409,
    TooMany: 429,
}


class MonitorRoute(APIRoute):
    """A route whose errors have the codes of the description."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the route's own work."""
        work = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await work(request)
            except RequestValidationError as error:
                return _refuse(400, *_invalid(error))
            except BadInput as error:
                status = next((s for kind, s in _STATUSES.items() if isinstance(error, kind)), 400)
                return _refuse(status, _code(error), str(error))

        return answer


def _code(error: BadInput) -> str:
    if isinstance(error, NotFound):
        return "MONITOR_NOT_FOUND"
    if isinstance(error, Forbidden):
        return CODES[error.code]
    return error.code if error.code.isupper() else INVALID_CONFIG


def _invalid(error: RequestValidationError) -> tuple[str, str]:
    """Name everything that cannot be used, and the code by the first of it."""
    problems = error.errors()
    sentences = [
        f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}"
        for problem in problems
    ]
    is_url = any(_URLS & set(map(str, problem["loc"])) for problem in problems)
    return INVALID_URL if is_url else INVALID_CONFIG, "; ".join(sentences)


def _refuse(status: int, code: str, message: str) -> Response:
    headers = {"Retry-After": "60"} if status == HTTPStatus.TOO_MANY_REQUESTS else None
    content = {"error": {"code": code, "message": one_line(message)}}
    return JSONResponse(content, status, headers)
