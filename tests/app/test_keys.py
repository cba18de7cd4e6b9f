"""Keys: short ones are served on this machine alone, and said to be short."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from mimawari.app.http.keys import LEAST, find_short
from mimawari.errors import BadInput
from mimawari.settings import Settings
from tests.app.terminal import Terminal

LONG, SHORT = "k" * LEAST, "k" * (LEAST - 1)
BEYOND = ("0.0.0.0", "::", "192.0.2.1", "example.org", "")
HERE = ("127.0.0.1", "127.9.9.9", "::1", "localhost")


def find(folder: Path, *keys: str, **given: Any) -> list[str]:
    """Look for short keys among some."""
    settings = Settings(data=folder, api_keys=keys, **given)
    return find_short(settings, tuple(key.encode() for key in keys))


@pytest.mark.parametrize("host", BEYOND)
def test_a_short_key_is_refused_where_others_can_try_it(tmp_path: Path, host: str) -> None:
    assert find(tmp_path, LONG, "見" * LEAST, host=host) == []
    with pytest.raises(BadInput, match="key 2 of MIMAWARI_API_KEYS") as refused:
        find(tmp_path, LONG, SHORT, host=host)
    assert f"has {LEAST - 1} characters" in str(refused.value)
    assert "openssl rand -hex 24" in str(refused.value)
    assert SHORT not in str(refused.value)


@pytest.mark.parametrize("host", HERE)
def test_a_short_key_is_named_where_nobody_else_can_try_it(tmp_path: Path, host: str) -> None:
    [said] = find(tmp_path, SHORT, LONG, host=host)
    assert said.startswith("key 1 of MIMAWARI_API_KEYS")
    assert "openssl rand -hex 24" in said


def test_the_internal_key_is_looked_at_by_its_own_address(tmp_path: Path) -> None:
    given = {"internal_key": SecretStr(SHORT)}
    assert "INTERNAL_API_KEY" in find(tmp_path, LONG, host="::", **given)[0]
    with pytest.raises(BadInput, match="INTERNAL_API_KEY has 19 characters"):
        find(tmp_path, LONG, internal_host="0.0.0.0", **given)
    longer = {"internal_key": SecretStr(LONG)}
    assert find(tmp_path, LONG, internal_host="0.0.0.0", **longer) == []


def test_a_start_with_a_short_key_beyond_loopback_is_a_sentence(terminal: Terminal) -> None:
    given = {"API_KEY": "letmein", "MIMAWARI_PORT": "0", "MIMAWARI_HOST": "0.0.0.0"}
    sentence = terminal.run("serve", **given).refused()
    assert "openssl rand -hex 24" in sentence
    assert "letmein" not in sentence
    doctor = terminal.run("doctor", "--json", **given)
    assert doctor.code == 1
    assert "openssl rand" in doctor.out


def test_a_start_with_a_short_key_on_loopback_warns(terminal: Terminal) -> None:
    with terminal.serve("--role", "api", API_KEY="letmein") as serving:
        serving.facts()
        [line] = [line for line in serving.log() if line["message"] == "key is short"]
    assert line["level"] == "WARN"
    assert "openssl rand -hex 24" in line["data"]["reason"]
    assert "letmein" not in str(line)


def test_the_key_that_a_first_start_makes_is_long_enough(terminal: Terminal) -> None:
    with terminal.serve("--role", "api", MIMAWARI_HOST="0.0.0.0") as serving:
        assert serving.facts()["API"]
        assert not [line for line in serving.log() if line["message"] == "key is short"]
