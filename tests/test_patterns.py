"""No regular expression takes more than linear time, whatever it is given."""

import json
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.patterns import Found, Late, attack

ROOT = Path(__file__).parents[1]
BOUNDED = {
    # What these are given is cut before, to so many characters.
    "mimawari.net.html: <meta": 2048,
    "mimawari.sites.yahoo_realestate.details: [\\s|": 500,
    # 200 characters, of which normalization may make up to 18 each.
    "mimawari.sites.yahoo_realestate.labels: ": 3600,
    "mimawari.sites.yen: ": 200,
    "mimawari.web.words: ": 500,
}
KNOWN = {
    # Patterns of the program itself, found by their own name.
    "mimawari.kernel.naming",
    # A literal text between two single characters.
    "mimawari.sim.sites.google_books.site",
}


@cache
def results() -> dict[str, Any]:
    """Attack every pattern, in a process that can be ended."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.patterns", json.dumps(BOUNDED)],
        capture_output=True, text=True, timeout=300, check=True, cwd=ROOT,
    )  # fmt: skip
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.timeout(330)
def test_every_pattern_withstands_texts_that_are_made_against_it() -> None:
    assert results()["count"] > 150
    assert results()["late"] == {}


def test_every_pattern_is_known_before_the_program_runs() -> None:
    assert {where.partition(":")[0] for where in results()["unknown"]} == KNOWN


def test_every_bound_is_still_needed_by_a_pattern() -> None:
    unused = [one for one in BOUNDED if not any(key.startswith(one) for key in results()["keys"])]
    assert unused == []


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        ("(a|a)*b", "fullmatch"),
        ("(a+)+b", "match"),
        (r"\s+$", "search"),
        ("x*y", "search"),
        (r"[a-z]+://[^/]*:\S*@", "sub"),
        (r"(.*?,){1,100}P", "match"),
        (r"<a\s*[^>]*>", "findall"),
    ],
)
def test_a_pattern_that_takes_too_long_is_found(pattern: str, method: str) -> None:
    def late(*_: object) -> None:
        raise Late

    before = signal.signal(signal.SIGVTALRM, late)
    try:
        assert attack(Found("test", pattern, 0, frozenset({method})))
        assert attack(Found("test", "[a-z]{1,20}@", 0, frozenset({"search"}))) is None
    finally:
        signal.signal(signal.SIGVTALRM, before)
