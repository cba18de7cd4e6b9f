"""The page on streams names all there is, and what it tells receivers to run works."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mimawari.net.webhook import EVENT_ID, SIGNATURE, TIMESTAMP, sign
from mimawari.watches.streams.cli.add import OPTIONS
from mimawari.watches.streams.deliveries import AGAIN_AFTER
from mimawari.watches.streams.models import EventType, Status
from mimawari.watches.streams.schemas.requests import ConfigIn

PAGE = (Path(__file__).parents[2] / "docs" / "streams.md").read_text("utf-8")
KEY, NOW = "鍵".encode(), 1_790_000_000
BODY = json.dumps({"event_type": "alert.blackout", "title": "配信"}, ensure_ascii=False).encode()
WIDE = {ord(digit): 0xFF10 + int(digit) for digit in "0123456789"}
CALL = """
const [headers, body, key, now] = JSON.parse(require("node:fs").readFileSync(0));
const says = verify(headers, Buffer.from(body, "latin1"), Buffer.from(key, "latin1"), now);
process.stdout.write(String(says));
"""

Verify = Callable[[dict[str, str], bytes, bytes, float], Any]


def snippet(language: str) -> str:
    """Take the one piece of code in a language out of the page."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return str(found)


def in_python(headers: dict[str, str], body: bytes, key: bytes, now: float) -> Any:
    """Ask the verifier in Python."""
    scope: dict[str, Any] = {}
    exec(snippet("python"), scope)
    return scope["verify"](headers, body, key, now)


def in_javascript(headers: dict[str, str], body: bytes, key: bytes, now: float) -> Any:
    """Ask the verifier in JavaScript, where there is a Node to run it."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node on this machine")
    lower = {name.lower(): value for name, value in headers.items()}
    asked = json.dumps([lower, body.decode("latin-1"), key.decode("latin-1"), now])
    done = subprocess.run(
        [node, "-e", snippet("javascript") + CALL],
        input=asked, capture_output=True, text=True, timeout=30, check=True,
    )  # fmt: skip
    return {"true": True, "false": False}[done.stdout]


def signed(**other: str) -> dict[str, str]:
    """Return the headers of a webhook, some of them otherwise."""
    usual = {TIMESTAMP: str(NOW), SIGNATURE: sign(KEY, str(NOW), BODY), EVENT_ID: "1"}
    return {**usual, **other}


@pytest.fixture(params=[in_python, in_javascript])
def verify(request: pytest.FixtureRequest) -> Verify:
    """Each verifier of the page."""
    found: Verify = request.param
    return found


@pytest.mark.parametrize("off", [0, 300, -300])
def test_a_webhook_of_ours_is_taken_within_300_seconds(verify: Verify, off: int) -> None:
    assert verify(signed(), BODY, KEY, NOW + off) is True


@pytest.mark.parametrize("off", [301, -301])
def test_a_replay_is_refused(verify: Verify, off: int) -> None:
    assert verify(signed(), BODY, KEY, NOW + off) is False


@pytest.mark.parametrize(
    ("headers", "body", "key"),
    [
        (signed(), BODY + b" ", KEY),
        (signed(), BODY, b"another key"),
        (signed(**{SIGNATURE: "sha256=é" + "0" * 63}), BODY, KEY),
        (signed(**{SIGNATURE: "é" * 71}), BODY, KEY),
        (signed(**{SIGNATURE: sign(KEY, str(NOW), BODY)[7:]}), BODY, KEY),
        (signed(**{SIGNATURE: ""}), BODY, KEY),
        (signed(**{TIMESTAMP: str(NOW + 1)}), BODY, KEY),
        (signed(**{TIMESTAMP: f"{NOW}.0"}), BODY, KEY),
        (signed(**{TIMESTAMP: str(NOW).translate(WIDE)}), BODY, KEY),
        (signed(**{TIMESTAMP: "9" * 400}), BODY, KEY),
        ({SIGNATURE: signed()[SIGNATURE]}, BODY, KEY),
        ({TIMESTAMP: str(NOW)}, BODY, KEY),
        ({}, BODY, KEY),
    ],
    ids=[
        "other body", "other key", "letters in the signature", "letters of that length",
        "no scheme", "no signature", "other time", "a fraction", "wide digits", "endless digits",
        "time missing", "signature missing", "both missing",
    ],
)  # fmt: skip
def test_what_is_not_ours_is_refused(
    verify: Verify, headers: dict[str, str], body: bytes, key: bytes
) -> None:
    assert verify(headers, body, key, NOW) is False


def test_every_event_is_documented_and_no_other() -> None:
    rows = re.findall(r"^\| (`(?:stream|alert|monitor)\..*?) \|", PAGE, re.MULTILINE)
    named = [name for row in rows for name in re.findall("`([a-z_.]+)`", row)]
    assert sorted(named) == sorted(EventType)


def test_every_key_of_the_configuration_is_documented_with_its_option_and_default() -> None:
    found = re.findall(
        r"^\| `([a-z_]+)` \| `(--[a-z-]+)` \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE
    )
    rows = {name: (option, default.strip("`")) for name, option, default, _ in found}
    assert list(rows) == list(ConfigIn.model_fields)
    for name, field in ConfigIn.model_fields.items():
        option, default = rows[name]
        assert OPTIONS.get(name, option) == option
        value = field.get_default(call_default_factory=True)
        assert default == ("none" if value is None else json.dumps(value).strip('"'))


def test_every_status_and_every_header_is_documented() -> None:
    for name in (*Status, SIGNATURE, TIMESTAMP, EVENT_ID):
        assert re.search(rf"^\| `{re.escape(name)}`", PAGE, re.MULTILINE), name


def test_retries_are_documented_as_they_are() -> None:
    *first, last = (f"{wait.total_seconds():g}" for wait in AGAIN_AFTER)
    assert f"tried again {', '.join(first)} and {last} s later" in PAGE


def test_examples_are_json() -> None:
    examples = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    for example in examples:
        assert json.loads(example)
    for data in re.findall(r"\| `(\{.*?\})`", PAGE):
        assert json.loads(data)
