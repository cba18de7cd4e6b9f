"""The one form in which every error reaches a client."""

import json
from collections.abc import Mapping
from http import HTTPMethod, HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match

from mimawari.errors import BadInput, Forbidden, NotFound, StoreDown
from mimawari.text import one_line


class Problem(BaseModel):
    """What went wrong, as a word for programs and a sentence for people."""

    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["no job goes by that id"])


class Envelope(BaseModel):
    """Every error."""

    error: Problem


_FRAMEWORKS = "HTTPValidationError"
_SENTENCES = {
    400: "the request cannot be read",
    401: "the key is missing or wrong",
    403: "the key is good, and not for this",
    404: "nothing goes by that name",
    405: "that method is not allowed here",
    408: "the request was not complete in time; send it again",
    409: "it cannot be done in the state it is in",
    413: "the body is too large",
    421: "the Host is none under which this is served; MIMAWARI_PUBLIC_URL says which is",
    422: "a value is not allowed",
    429: "too many requests; Retry-After says when to come again",
    503: "the store does not answer; nothing was lost",
}
_AGAIN = {"Retry-After": {"description": "After how many seconds.", "schema": {"type": "integer"}}}
_HEADERS: dict[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"description": "ApiKey.", "schema": {"type": "string"}}},
    429: _AGAIN,
    503: _AGAIN,
}
_STATUSES = {NotFound: HTTPStatus.NOT_FOUND, Forbidden: HTTPStatus.FORBIDDEN}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the errors of a route, with those that the edge adds to every route."""
    all_of_them = {400, 401, 408, 413, 421, 422, 429, 503, *statuses}
    return {status: _describe(status, _SENTENCES[status]) for status in sorted(all_of_them)}


def errors_as(meanings: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Document the errors of routes that say themselves what theirs mean."""
    told = {**{status: _SENTENCES[status] for status in (401, 408, 413, 421, 503)}, **meanings}
    return {status: _describe(status, told[status]) for status in sorted(told)}


def _describe(status: int, sentence: str) -> dict[str, Any]:
    headers = {"headers": _HEADERS[status]} if status in _HEADERS else {}
    return {"model": Envelope, "description": sentence, **headers}


def envelope(code: str, message: str) -> dict[str, Any]:
    """Put an error into its envelope."""
    return {"error": {"code": code, "message": one_line(message)}}


def envelope_bytes(code: str, message: str) -> bytes:
    """Put an error into its envelope, as it is sent."""
    return json.dumps(envelope(code, message)).encode()


class Described(FastAPI):
    """An app that describes the errors that it answers with, and no other."""

    def openapi(self) -> dict[str, Any]:
        """Describe it without the framework's own form of refusals, which nobody is given."""
        if self.openapi_schema is None:
            found = super().openapi()
            for path in found["paths"].values():
                for operation in path.values():
                    if _FRAMEWORKS in str(operation["responses"].get("422")):
                        del operation["responses"]["422"]
            for name in (_FRAMEWORKS, "ValidationError"):
                found["components"]["schemas"].pop(name, None)
            self.openapi_schema = found
        return self.openapi_schema


def install(app: FastAPI) -> None:
    """Answer every error of ours, and of the framework's, in the envelope."""

    @app.exception_handler(StoreDown)
    async def store_down(_: Request, error: StoreDown) -> JSONResponse:
        return JSONResponse(envelope("store_down", str(error)), 503, {"Retry-After": "5"})

    @app.exception_handler(BadInput)
    async def bad_input(_: Request, error: BadInput) -> JSONResponse:
        status = next((s for kind, s in _STATUSES.items() if isinstance(error, kind)), 422)
        return JSONResponse(envelope(error.code, str(error)), status)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        problems = [
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg'].removeprefix('Value error, ')}"
            for problem in error.errors()
        ]
        return JSONResponse(envelope("bad_input", "; ".join(problems)), 422)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        codes = {404: "not_found", 405: "method_not_allowed", 409: "conflict"}
        code, status = codes.get(error.status_code, "bad_request"), error.status_code
        headers = dict(error.headers or {})
        if status == HTTPStatus.METHOD_NOT_ALLOWED:
            headers["Allow"] = ", ".join(_methods(request))
        bare = error.detail == HTTPStatus(status).phrase
        message = _SENTENCES.get(status, error.detail) if bare else str(error.detail)
        return JSONResponse(envelope(code, message), status, headers)


def _methods(request: Request) -> list[str]:
    """List the methods of all routes at a path; the framework names those of one."""
    routes: list[BaseRoute] = request.app.routes

    def is_here(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] == Match.FULL for route in routes)

    return [method for method in HTTPMethod if is_here(method)]
