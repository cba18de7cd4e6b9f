"""From an old database the program returns what it returned when the dump was made."""

import json
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Databases
from tests.golden.databases import DUMPS, load
from tests.golden.keeping import FOLDER, compare, load_kept
from tests.golden.program import ROOT, environment, run
from tests.golden.reading import list_requests, read_responses
from tests.servers import ENGINES

MOST_DUMP = 2 * 1024 * 1024
MOST_RESPONSES = 4 * 1024 * 1024
TERMINAL = ("COLUMNS", "FORCE_COLOR", "NO_COLOR")
"""Variables that are read once, when the program is imported."""
OLD_VERSION = "0012"
"""The newest migration when the dumps were made."""


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An environment with the settings of somebody else in it."""
    monkeypatch.setenv("TZ", "America/New_York")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("MIMAWARI_ZONE", "Europe/Paris")
    monkeypatch.setenv("MIMAWARI_HOT_ALERT_OUTFLOW", "1")
    before = _variables()
    yield
    assert _variables() == before


def _variables() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("elsewhere")
def test_an_upgraded_old_database_gives_the_same_responses(
    engine: str, databases: Databases, tmp_path: Path
) -> None:
    url = databases.fresh(engine)
    load(engine, url)
    # In a process of its own: what other tests have imported keeps the width of their terminal.
    words = [sys.executable, "-m", "tests.golden", "read", str(tmp_path), url]
    plain = {name: value for name, value in os.environ.items() if name not in TERMINAL}
    done = subprocess.run(
        words, cwd=ROOT, env=plain, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stderr
    assert compare(load_kept(), json.loads(done.stdout)) == []
    with environment(tmp_path, url):
        info = run(["db", "info"]).out
    version, needed = (line.split()[1] for line in info.splitlines()[1:3])
    assert version == needed


def test_reading_changes_nothing_that_is_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/golden.db"
    load("sqlite", url)
    shelves = ("api", "internal")
    first = read_responses(tmp_path, url, shelves)
    assert compare(first, read_responses(tmp_path, url, shelves)) == []


REMOVED = "/api/crawl/removed/1"
SENDS = "/api/notify/targets/3/sends"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (
            "UPDATE mercari_crawl_results_removed SET price = price + 7 WHERE id = 1",
            [
                f"api-prices: {REMOVED}: json.removed[6].price: 2200 became 2207",
                f'api-prices: {REMOVED}?format=csv: csv.row[6].price: "2200" became "2207"',
            ],
        ),
        (
            "DELETE FROM notify_sends WHERE target_id = 3",
            [f"api-notify: {SENDS}: json.sends[0]: … is gone"],
        ),
    ],
)
def test_a_value_that_changes_and_a_row_that_is_lost_are_named_and_nothing_else(
    statement: str, said: list[str], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/golden.db"
    load("sqlite", url)
    with closing(sqlite3.connect(tmp_path / "golden.db")) as database:
        assert database.execute(statement).rowcount == 1
        database.commit()
    found = read_responses(tmp_path, url, ("api", "internal"))
    kept = {name: responses for name, responses in load_kept().items() if name in found}
    assert [re.sub(r"{.*…", "…", one) for one in compare(kept, found)] == said


def test_the_dumps_are_of_the_old_version_and_fill_every_table(tmp_path: Path) -> None:
    load("sqlite", f"sqlite:///{tmp_path}/golden.db")
    with closing(sqlite3.connect(tmp_path / "golden.db")) as database:
        query = "SELECT name FROM sqlite_master WHERE type = 'table'"
        names = [name for (name,) in database.execute(query)]
        counts = {
            name: database.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names
        }
        (version,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
    assert version == OLD_VERSION
    assert [name for name, count in counts.items() if not count] == []


def test_golden_data_stay_small() -> None:
    assert [path.stem for path in sorted(DUMPS.iterdir())] == [
        f"{engine}.sql" for engine in sorted(ENGINES)
    ]
    assert all(path.stat().st_size <= MOST_DUMP for path in DUMPS.iterdir())
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) <= MOST_RESPONSES
    assert len(set(list_requests())) == len(list(list_requests()))
