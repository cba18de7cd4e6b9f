"""Advice on what is missing fits the way the program was installed, and names no package index."""

import json
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mimawari.app.ops import open_link, open_store
from mimawari.errors import BadInput
from mimawari.installation import find_source, install_advice
from mimawari.settings import Settings
from mimawari.watches.streams.runners import open_pods

ROOT = Path(__file__).parents[2]
ADVISE = "from mimawari.installation import install_advice; print(install_advice('youtube'))"
BARE_NAME = re.compile(
    r"""mimawari\[|pip3?\s+(?:install|download|wheel)\b[^\n]*[\s'"]mimawari(?![\w./-])""",
    re.IGNORECASE,
)
AS_ROOT = re.compile(r"sudo\b[^\n|]*\bpip3?\b", re.IGNORECASE)


def read_texts() -> Iterator[tuple[Path, str]]:
    """Read everything in which people are told what to type."""
    names = ("src", "docs", "deploy", "tools", ".ci", "bench")
    paths = [path for name in names for path in (ROOT / name).rglob("*") if path.is_file()]
    for path in [*paths, *ROOT.glob("*.md"), ROOT / "Makefile"]:
        if path.suffix not in {".pyc", ".png", ".ico", ".woff2"}:
            yield path, path.read_text("utf-8", "replace").replace("\\\n", " ")


def install(python: Path, source: str) -> None:
    """Install the program for an interpreter, without what it depends on."""
    offline = ("--no-deps", "--no-index", "--no-build-isolation", "--no-compile")
    command = (sys.executable, "-m", "pip", "--python", python, "install", "-q", *offline, source)
    subprocess.run(command, check=True, cwd=ROOT)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel."""
    folder = tmp_path_factory.mktemp("wheel with a space")
    command = ("-m", "pip", "wheel", "-q", "--no-deps", "--no-index", "--no-build-isolation")
    subprocess.run([sys.executable, *command, "-w", folder, "."], check=True, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own and return its interpreter."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    install(folder / "bin" / "python", str(wheel))
    return folder / "bin" / "python"


def advise(python: Path) -> str:
    """Ask an installation how to add an extra."""
    command = (python, "-I", "-c", ADVISE)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def record(python: Path, text: str | None) -> None:
    """Change what pip wrote about the origin of an installation."""
    (path,) = python.parents[1].glob("lib/*/site-packages/mimawari-*.dist-info")
    if text is None:
        (path / "direct_url.json").unlink()
    else:
        (path / "direct_url.json").write_text(text, "utf-8")


def test_an_installed_wheel_is_installed_again_with_the_extra(python: Path, wheel: Path) -> None:
    assert advise(python) == f"run: {python} -m pip install '{wheel}[youtube]'"


def test_a_clone_is_installed_by_make(tmp_path: Path, python: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "tools").mkdir(parents=True)
    for name in ("Makefile", "tools/venv", "requirements.lock"):
        (clone / name).touch()
    record(python, json.dumps({"url": clone.as_uri(), "dir_info": {"editable": True}}))
    # In an environment that `make venv` did not make, make would install elsewhere.
    pip = f"{python} -m pip install --no-deps --require-hashes"
    assert advise(python) == f"run: {pip} -r {clone}/requirements.lock"
    (clone / ".venv").symlink_to(python.parents[1])
    assert advise(python).startswith(f"run 'make venv' in {clone} ")


def test_a_folder_without_a_lock_is_installed_by_its_path(tmp_path: Path, python: Path) -> None:
    record(python, json.dumps({"url": tmp_path.as_uri(), "dir_info": {}}))
    assert advise(python) == f"run: {python} -m pip install '{tmp_path}[youtube]'"


@pytest.mark.parametrize(
    "text",
    [
        None, "", "no json", "[]", "{}", '{"url": 5}', '{"url": "file:///nowhere/mimawari.whl"}',
        '{"url": "https://user:password@example.org/mimawari.whl"}', '{"url": "file://[/x"}',
        '{"url": "file://elsewhere/tmp"}', '{"url": "file:///tmp/%00"}',
    ],
)  # fmt: skip
def test_where_the_source_is_gone_no_command_is_made_up(python: Path, text: str | None) -> None:
    record(python, "{}")
    record(python, text)
    said = advise(python)
    record(python, "{}")
    assert said.startswith("install this program again with its extra 'youtube', from the ")
    assert not re.search("pip|password|mimawari", said)


def test_a_source_is_found_by_the_letters_of_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "見回り 100%"
    folder.mkdir()
    assert find_source({"url": folder.as_uri()}) == folder


@pytest.mark.parametrize("name", ["asyncpg", "asyncmy", "redis", "lightkube"])
def test_a_missing_driver_is_said_with_the_advice(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [one for one in sys.modules if one.partition(".")[0] == name]:
        monkeypatch.delitem(sys.modules, module)
    for module in ("mimawari.store.redis.link", "mimawari.watches.streams.pods.runner"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    for module in [one for one in sys.modules if one.startswith("mimawari.net.cluster")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, name, None)
    scheme = {"asyncpg": "postgresql", "asyncmy": "mariadb"}.get(name, "sqlite")
    settings = Settings(data=tmp_path, database_url=f"{scheme}://u@127.0.0.1/x")
    opening: dict[str, tuple[str, Any]] = {
        "asyncpg": ("postgres", open_store),
        "asyncmy": ("mariadb", open_store),
        "redis": ("redis", open_link),
        "lightkube": ("k8s", lambda given: open_pods(None, None, given)),  # type: ignore[arg-type]
    }
    extra, open_it = opening[name]
    with pytest.raises(BadInput) as caught:
        open_it(settings)
    assert str(caught.value).endswith(install_advice(extra))


def test_nothing_tells_people_to_install_the_bare_name_or_by_root() -> None:
    texts = dict(read_texts())
    assert len(texts) > 100
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path, text in texts.items()
        for pattern in (BARE_NAME, AS_ROOT)
        for match in pattern.finditer(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "pip install mimawari",
        "pip3 install --user 'mimawari[redis]'",
        'python -m pip install -U "mimawari"',
        "pip wheel mimawari==1",
        "pip install: `mimawari[redis]`",
    ],
)
def test_an_advice_to_install_the_bare_name_is_noticed(line: str) -> None:
    assert BARE_NAME.search(line)


def test_an_advice_to_run_pip_as_root_is_noticed() -> None:
    assert AS_ROOT.search("$ sudo python3 -m venv /x && sudo /x/bin/pip install y")
    assert not BARE_NAME.search("/opt/mimawari/bin/pip install --require-hashes -r x.lock")
