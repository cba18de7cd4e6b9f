"""What the simulated market's API takes as a proof: one that is new, and for this very request."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from joserfc.jwk import ECKey

from mimawari.sim.sites.mercari.lives import Kind
from tests.sim.ground import KEY, sign
from tests.sim.market_ground import BUSIEST, ITEM, PRODUCT, SEARCH, Asking


async def test_a_request_without_a_proof_is_turned_away(api: Asking) -> None:
    body = {"searchCondition": {"keyword": "x"}}
    for reply in (
        await api.http.post(SEARCH, json=body, headers={"X-Platform": "web"}),
        await api.http.get(f"{ITEM}?id=m1", headers={"X-Platform": "web"}),
        await api.http.get(f"{PRODUCT}x", headers={"X-Platform": "web"}),
    ):
        assert reply.status_code == 401
        assert reply.json()["message"]


OTHER = ECKey.generate_key("P-256", private=True)
PUBLIC = KEY.as_dict(private=False)
LONG_AGO = 1_000_000


def bad_proofs() -> dict[str, Any]:
    """Name ways to make a proof wrong: changes of claims, or of how it is signed."""
    return {
        "no claims": {"claims": []},
        "text for claims": {"claims": "x"},
        "no iat": {"drop": "iat"},
        "no jti": {"drop": "jti"},
        "no htu": {"drop": "htu"},
        "no htm": {"drop": "htm"},
        "an empty jti": {"change": {"jti": ""}},
        "a number for jti": {"change": {"jti": 5}},
        "an old one": {"change": {"iat": LONG_AGO}},
        "one of tomorrow": {"later": 86_400},
        "one of eleven minutes ago": {"later": -660},
        "iat not a number": {"change": {"iat": float("nan")}},
        "iat without end": {"change": {"iat": 10**400}},
        "iat in words": {"change": {"iat": "now"}},
        "another method": {"change": {"htm": "GET"}},
        "another path": {"change": {"htu": "http://x/v2/other"}},
        "another host": {"change": {"htu": f"http://elsewhere{SEARCH}"}},
        "a broken address": {"change": {"htu": "http://["}},
        "signed by another key": {"key": OTHER},
        "a key that did not sign": {"header": {"jwk": OTHER.as_dict(private=False)}},
        "a private key in it": {"header": {"jwk": KEY.as_dict(private=True)}},
        "no key": {"header": {"jwk": {}}},
        "a key without y": {"header": {"jwk": {**PUBLIC, "y": ""}}},
        "a key with short x": {"header": {"jwk": {**PUBLIC, "x": PUBLIC["x"][:-2]}}},
        "a key off the curve": {"header": {"jwk": {**PUBLIC, "x": "A" * 43}}},
        "a key of another curve": {"header": {"jwk": {**PUBLIC, "crv": "P-384"}}},
        "another type": {"header": {"typ": "JWT"}},
        "a changed signature": {"tail": "AA"},
    }


@pytest.mark.parametrize("name", bad_proofs())
async def test_a_proof_that_is_not_for_this_very_request_is_no_proof(
    api: Asking, name: str
) -> None:
    how = bad_proofs()[name]
    claims = api.prover.claims("POST", SEARCH) | how.get("change", {})
    claims["iat"] = claims.get("iat", 0) + how["later"] if "later" in how else claims["iat"]
    claims.pop(how.get("drop", ""), None)
    proof = sign(
        how.get("claims", claims),
        header=how.get("header"),
        key=how.get("key", KEY),
        tail=how.get("tail", ""),
    )
    headers = {"DPoP": proof, "X-Platform": "web"}
    body = {"searchCondition": {"keyword": BUSIEST}}
    reply = await api.http.post(SEARCH, json=body, headers=headers)
    assert reply.status_code == 401, name


@given(
    proof=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1) | st.just("a.b.c")
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
async def test_noise_is_no_proof(api: Asking, proof: str) -> None:
    headers = {"DPoP": proof, "X-Platform": "web"}
    assert (await api.http.get(f"{ITEM}?id=x", headers=headers)).status_code == 401


async def test_a_proof_is_taken_once(api: Asking) -> None:
    headers = api.prover.headers("GET", ITEM)
    url = f"{ITEM}?id={api.one(Kind.ORDINARY)}"
    assert (await api.http.get(url, headers=headers)).status_code == 200
    assert (await api.http.get(url, headers=headers)).status_code == 401


async def test_one_key_may_sign_many_proofs_and_any_key_will_do(api: Asking) -> None:
    url = f"{ITEM}?id={api.one(Kind.ORDINARY)}"
    for key in (KEY, KEY, OTHER):
        proof = sign(
            api.prover.claims("GET", ITEM), header={"jwk": key.as_dict(private=False)}, key=key
        )
        reply = await api.http.get(url, headers={"DPoP": proof, "X-Platform": "web"})
        assert reply.status_code == 200


async def test_a_proof_may_be_some_minutes_off(api: Asking) -> None:
    for seconds in (-590, 590):
        claims = api.prover.claims("GET", ITEM)
        claims["iat"] += seconds
        headers = {"DPoP": sign(claims), "X-Platform": "web"}
        reply = await api.http.get(f"{ITEM}?id={api.one(Kind.ORDINARY)}", headers=headers)
        assert reply.status_code == 200


@pytest.mark.parametrize("platform", [None, "", "ios", "WEB"])
async def test_another_platform_is_a_bad_request(api: Asking, platform: str | None) -> None:
    headers = api.prover.headers("GET", ITEM)
    del headers["X-Platform"]
    if platform is not None:
        headers["X-Platform"] = platform
    assert (await api.http.get(f"{ITEM}?id=m1", headers=headers)).status_code == 400
