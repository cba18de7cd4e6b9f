"""What is shipped to run the system elsewhere: as far as it can be checked without a daemon."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from mimawari.app.roles import Role
from mimawari.settings import Settings, names_of

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
HADOLINT = Path(sys.executable).parent / "hadolint"
UID = "10001"
NOT_YET = {"MIMAWARI_REDIS_URL"}
"""Settings that only some installations know."""
INSTALL = re.compile(
    r"(?:\bpip3?\b|\$\{pip\[@\]\}\"?) (?:install|download|wheel|sync)\b[^\n|&;)]*"
    r"|\b(?:pipx|uvx|npx|npm|easy_install) [^\n]*"
)


def known_names() -> set[str]:
    """List all variables that set something."""
    return {name for field in Settings.model_fields for name in names_of(field)} | NOT_YET


def services() -> dict[str, Any]:
    """Read the services of the compose file."""
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    return found


def test_hadolint_finds_nothing_wrong_with_the_dockerfile() -> None:
    done = subprocess.run(
        [HADOLINT, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_a_bad_dockerfile_is_noticed(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python:latest\nRUN sudo pip install x\n")
    done = subprocess.run([HADOLINT, bad], capture_output=True, text=True, check=False)
    assert done.returncode == 1


def test_the_image_runs_as_nobody_and_says_how_it_is() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    last = text.rpartition("\nFROM ")[2]
    assert f"USER {UID}:{UID}" in last
    assert 'VOLUME ["/data", "/tmp"]' in last
    assert "HEALTHCHECK" in last
    assert 'ENTRYPOINT ["mimawari"]' in last
    assert "-slim-" in last.splitlines()[0]


def read_installs() -> list[tuple[str, str]]:
    """List every command that installs Python packages, in whatever the project ships."""
    names = ("deploy", "tools", "docs", ".ci", "bench")
    paths = [path for name in names for path in (ROOT / name).rglob("*") if path.is_file()]
    found = []
    for path in [*paths, *ROOT.glob("*.md"), ROOT / "Makefile"]:
        text = path.read_bytes().decode("utf-8", "replace").replace("\\\n", " ")
        found += [(path.name, match[0]) for match in INSTALL.finditer(text)]
    return found


def is_bound(command: str) -> bool:
    """Say whether a command takes from an index only what has its hash in the lock."""
    words = set(command.replace("`", " ").split())
    is_locked = {"--no-deps", "--require-hashes", "-r", "requirements.lock"} <= words
    is_offline = "--no-index" in words and {"--no-build-isolation", "--find-links"} & words
    # What depends on nothing and builds with what is here asks no index.
    is_ours = {"--no-deps", "--no-build-isolation"} <= words and words & {".", "-e"}
    return bool(is_locked or is_offline or is_ours)


def test_every_install_is_by_the_hashes_of_the_lock() -> None:
    found = read_installs()
    assert {"Dockerfile", "venv", "deploy.md"} <= {name for name, _ in found}
    assert [one for one in found if not is_bound(one[1])] == []


@pytest.mark.parametrize(
    "command",
    [
        "pip install --upgrade yt-dlp",
        "python -m pip install --constraint x .[redis]",
        "pip install -r requirements.lock",
        "pipx run x",
        "uvx x",
        "npm install x",
    ],
)
def test_an_install_without_hashes_is_noticed(command: str) -> None:
    (match,) = INSTALL.finditer(f"$ {command}\n")
    assert not is_bound(match[0])


def test_every_package_of_the_lock_has_a_hash() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line[:1].isalnum()]
    assert len(lines) > 100
    assert [line for line in lines if "==" not in line or "--hash=sha256:" not in line] == []


def test_the_image_gets_the_lock_before_it_installs() -> None:
    build = (DEPLOY / "Dockerfile").read_text("utf-8").rpartition("\nFROM ")[0]
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()
    assert "!requirements.lock" in ignored
    assert build.index("COPY pyproject.toml requirements.lock") < build.index("RUN pip download")
    assert build.index("RUN pip download") < build.index("pip install --no-index")


@pytest.mark.parametrize("name", ["app", "worker", "monitor", "migrate"])
def test_each_part_of_ours_is_confined(name: str) -> None:
    service = services()[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert service["tmpfs"] == ["/tmp"]
    assert set(service["environment"]) <= known_names()


def test_all_roles_are_played_once_the_tables_are_there() -> None:
    found = services()
    played = [
        word
        for name in ("app", "worker", "monitor")
        for before, word in zip(found[name]["command"], found[name]["command"][1:], strict=False)
        if before == "--role"
    ]
    assert sorted(played) == sorted(Role)
    for name in ("app", "worker", "monitor"):
        after = found[name]["depends_on"]["migrate"]
        assert after == {"condition": "service_completed_successfully"}
    assert found["app"]["ports"] == ["127.0.0.1:8084:8084"]
    assert {"postgres", "redis"} <= set(found)
    assert all("healthcheck" in found[name] for name in ("postgres", "redis"))


def test_no_secret_stands_in_the_compose_file() -> None:
    text = (DEPLOY / "compose.yaml").read_text("utf-8")
    for name in ("POSTGRES_PASSWORD", "API_KEY", "WEBHOOK_SIGNING_KEY"):
        assert f"${{{name}:?set it in .env}}" in text


def test_the_chart_sets_what_there_is_to_set() -> None:
    chart = DEPLOY / "helm" / "stream-monitor"
    text = (chart / "templates" / "configmap.yaml").read_text("utf-8")
    names = set(re.findall(r"^  ([A-Z_]+):", text, re.MULTILINE))
    values = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
    assert len(names) > 5
    assert names | set(values["config"]) <= known_names()
    assert set(values["gateway"]["roles"]) | {"worker"} == {str(role) for role in Role}


def test_the_unit_stops_as_we_promise_and_may_do_little() -> None:
    text = (DEPLOY / "systemd" / "mimawari.service").read_text("utf-8")
    assert "ExecStart=/opt/mimawari/bin/mimawari serve\n" in text
    assert "TimeoutStopSec=30" in text
    for word in ("DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"):
        assert word in text
