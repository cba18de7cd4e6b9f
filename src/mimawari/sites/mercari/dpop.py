"""Proofs of possession: each request is signed, as the site's own page signs it."""

import json
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from joserfc import jws
from joserfc.jwk import ECKey

from mimawari.ids import new_id
from mimawari.kernel.ports import Clock


@cache
def process_key() -> ECKey:
    """Return the key of this process; the site binds nothing to it."""
    return ECKey.generate_key("P-256")


@cache
def device_id() -> str:
    """Return the name under which this process asks."""
    return new_id()


def make_proof(key: ECKey, method: str, url: str, clock: Clock) -> str:
    """Prove that this request, and no other, is made by the holder of the key."""
    public = key.as_dict(private=False)
    header: dict[str, Any] = {
        "typ": "dpop+jwt",
        "alg": "ES256",
        "jwk": {name: public[name] for name in ("crv", "kty", "x", "y")},
    }
    claims = {
        "iat": int(clock.now().timestamp()),
        "jti": new_id(),
        # The standard, and the site, leave the query out of what is signed.
        "htu": urlsplit(url)._replace(query="", fragment="").geturl(),
        "htm": method,
        "uuid": device_id(),
    }
    return jws.serialize_compact(header, json.dumps(claims), key, algorithms=["ES256"])
