"""The proofs of possession that the simulated market's API asks for with every request."""

import json
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey
from starlette.requests import Request

FRESH_FOR = timedelta(minutes=10)
MOST_REMEMBERED = 100_000
COORDINATE_LETTERS = 43
MOST_LETTERS = 4096


class Proofs:
    """Checks each proof once; the same proof is never taken twice."""

    def __init__(self) -> None:
        self._used: dict[str, None] = {}

    def complaint(self, request: Request, now: datetime) -> str | None:
        """Say what is wrong with a request's proof; None if it is good."""
        proof = request.headers.get("dpop", "")
        if not proof:
            return "the DPoP header is missing"
        claims = _read(proof)
        if isinstance(claims, str):
            return claims
        return _differs(claims, request, now) or self._seen(claims)

    def _seen(self, claims: dict[str, Any]) -> str | None:
        name = claims.get("jti")
        if not isinstance(name, str) or not name:
            return "jti is missing"
        if name in self._used:
            return "this proof was used before"
        self._used[name] = None
        if len(self._used) > MOST_REMEMBERED:
            del self._used[next(iter(self._used))]
        return None


def _read(proof: str) -> dict[str, Any] | str:
    """Return the claims of a proof that its own key signed, or what is wrong with it."""
    if len(proof) > MOST_LETTERS:
        return "the proof is too long"
    try:
        header = jws.extract_compact(proof.encode()).headers()
    except (JoseError, ValueError, RecursionError):
        return "the proof is no JWS"
    key = header.get("jwk")
    if header.get("typ") != "dpop+jwt" or header.get("alg") != "ES256":
        return "the proof is no ES256 dpop+jwt"
    if not isinstance(key, dict) or "d" in key or key.get("crv") != "P-256":
        return "the proof carries no public P-256 key"
    for name in ("x", "y"):
        if not isinstance(key.get(name), str) or len(key[name]) != COORDINATE_LETTERS:
            return "the key's coordinates are not 32 bytes long"
    return _verified(proof, key)


def _verified(proof: str, key: dict[str, Any]) -> dict[str, Any] | str:
    try:
        signed = jws.deserialize_compact(proof, ECKey.import_key(key), algorithms=["ES256"])
    except (JoseError, ValueError, TypeError):
        return "the proof's signature is wrong"
    try:
        claims = json.loads(signed.payload)
    except (ValueError, RecursionError):
        return "the proof's claims are no JSON"
    return claims if isinstance(claims, dict) else "the proof has no claims"


def _differs(claims: dict[str, Any], request: Request, now: datetime) -> str | None:
    issued = claims.get("iat")
    earliest, latest = (now - FRESH_FOR).timestamp(), (now + FRESH_FOR).timestamp()
    if not isinstance(issued, int | float) or not earliest <= issued <= latest:
        return "iat is not about now"
    if claims.get("htm") != request.method:
        return "htm is another method"
    try:
        url = urlsplit(str(claims.get("htu")))
    except ValueError:
        return "htu is no URL"
    if (url.netloc, url.path) != (request.headers.get("host"), request.url.path):
        return "htu is another URL"
    return None
