"""Each request to Mercari carries a proof that anybody can check and nobody else can make."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from joserfc.jwk import ECKey

from mimawari.kernel.clock import VirtualClock
from mimawari.sites.mercari.dpop import device_id, make_proof, process_key

URL = "https://api.mercari.jp/v2/entities:search"


def decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def check(proof: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Check a proof with nothing of ours, and return its header and its claims."""
    head, body, signature = proof.split(".")
    header, claims = json.loads(decode(head)), json.loads(decode(body))
    assert (len(header["jwk"]["x"]), len(header["jwk"]["y"]), len(signature)) == (43, 43, 86)
    x, y = (int.from_bytes(decode(header["jwk"][name])) for name in ("x", "y"))
    raw = decode(signature)
    signed = encode_dss_signature(int.from_bytes(raw[:32]), int.from_bytes(raw[32:]))
    public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    public.verify(signed, f"{head}.{body}".encode(), ec.ECDSA(SHA256()))
    return header, claims


def test_a_proof_says_what_the_site_asks_for_and_nothing_secret() -> None:
    clock = VirtualClock(datetime(2026, 9, 2, tzinfo=UTC))
    header, claims = check(make_proof(process_key(), "POST", URL, clock))
    assert {name: header[name] for name in ("typ", "alg")} == {"typ": "dpop+jwt", "alg": "ES256"}
    assert set(header) == {"typ", "alg", "jwk"}
    assert set(header["jwk"]) == {"kty", "crv", "x", "y"}
    assert (header["jwk"]["kty"], header["jwk"]["crv"]) == ("EC", "P-256")
    assert set(claims) == {"iat", "jti", "htu", "htm", "uuid"}
    assert (claims["htu"], claims["htm"]) == (URL, "POST")
    assert claims["iat"] == int(datetime(2026, 9, 2, tzinfo=UTC).timestamp())


async def test_the_time_of_a_proof_is_the_clocks() -> None:
    clock = VirtualClock(datetime(2026, 9, 2, 0, 0, 0, 900_000, tzinfo=UTC))
    await clock.advance(timedelta(days=3))
    _, claims = check(make_proof(process_key(), "GET", URL, clock))
    assert claims["iat"] == int(datetime(2026, 9, 5, tzinfo=UTC).timestamp())


def test_the_query_of_an_address_is_not_signed() -> None:
    for tail in ("?id=m12345678901", "#x", "?a=b#c"):
        _, claims = check(make_proof(process_key(), "GET", URL + tail, VirtualClock()))
        assert claims["htu"] == URL


def test_one_key_and_one_name_serve_the_whole_process_and_no_proof_is_used_twice() -> None:
    proofs = [check(make_proof(process_key(), "GET", URL, VirtualClock())) for _ in range(20)]
    assert len({header["jwk"]["x"] for header, _ in proofs}) == 1
    assert {claims["uuid"] for _, claims in proofs} == {device_id()}
    assert len({claims["jti"] for _, claims in proofs}) == 20


def key_of(number: int) -> ECKey:
    private = ec.derive_private_key(number, ec.SECP256R1())
    return ECKey.import_key(
        private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    )


def test_numbers_are_as_long_as_they_must_be_whatever_the_key() -> None:
    clock = VirtualClock()
    short = 0
    for number in range(1, 600):
        header, _ = check(make_proof(key_of(number), "GET", URL, clock))
        short += 0 in (decode(header["jwk"]["x"])[0], decode(header["jwk"]["y"])[0])
    # One coordinate in 256 begins with a zero; these keys are always the same.
    assert short > 0


def test_a_proof_for_one_request_is_none_for_another() -> None:
    head, _, signature = make_proof(process_key(), "GET", URL, VirtualClock()).split(".")
    _, other, _ = make_proof(process_key(), "POST", URL, VirtualClock()).split(".")
    with pytest.raises(InvalidSignature):
        check(f"{head}.{other}.{signature}")
