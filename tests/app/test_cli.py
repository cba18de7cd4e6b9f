"""Every command in a process: what it says, how it ends, and never a trace."""

import asyncio
import json
import re
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest

from mimawari import __version__
from mimawari.ids import new_id
from mimawari.kernel.clock import RealClock
from mimawari.kernel.job import State
from mimawari.store.sql import SqlStore
from tests.app.ground import end, put
from tests.app.terminal import Terminal
from tests.ready import lay_tables

HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e"
PASSWORD = "hunter2"


@pytest.fixture
def filled(terminal: Terminal) -> Terminal:
    """A terminal whose store has a job in every state but processing."""
    terminal.data.mkdir()

    async def fill() -> None:
        store = SqlStore(await lay_tables(terminal.data / "mimawari.db"), RealClock())
        for state in (State.DONE, State.FAILED, State.PERMANENT_FAIL):
            await end(store, state)
        await put(store, target="example:a", dedupe_key="a key", args={"text": HOSTILE})
        await store.close()

    asyncio.run(fill())
    return terminal


def ids(terminal: Terminal, *words: str) -> list[str]:
    """List jobs as a program does, and return their ids."""
    return [job["id"] for job in terminal.run("jobs", *words, "--json").json()]


def test_help_names_every_command(terminal: Terminal) -> None:
    said = terminal.run_program("--help")
    assert said.code == 0
    for name in ("serve", "demo", "sim", "doctor", "db", "jobs", "why", "version"):
        assert f" {name} " in said.out


def test_both_names_say_the_version(terminal: Terminal) -> None:
    for program in ("mimawari", "mmw"):
        said = terminal.run_program("version", program=program)
        assert (said.code, said.out, said.err) == (0, f"{__version__}\n", "")


@pytest.mark.parametrize("module", ["mimawari", "mimawari.app.cli"])
def test_python_runs_the_command_line_as_a_module(terminal: Terminal, module: str) -> None:
    said = terminal.run_program("-m", module, "version", program="python")
    assert (said.code, said.out, said.err) == (0, f"{__version__}\n", "")
    said = terminal.run_program("-m", module, "frob", program="python")
    assert (said.code, "No such command 'frob'" in said.err) == (2, True)


def test_the_doctor_finds_a_fresh_machine_well_and_changes_nothing(terminal: Terminal) -> None:
    said = terminal.run_program("doctor")
    assert (said.code, said.err) == (0, "")
    assert "data folder" in said.out
    checks = terminal.run("doctor", "--json").json()
    names = {"Python", "SQLite", "live streams", "data folder", "database"}
    assert {check["name"] for check in checks} >= names
    assert all(check["ok"] and not check["advice"] for check in checks)
    assert list(terminal.data.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("MIMAWARI_PORT", "x"), ("API_KEY", ""), ("JANITOR_INTERVAL", "often")],
)
def test_broken_settings_are_named_in_a_sentence(terminal: Terminal, name: str, value: str) -> None:
    sentence = terminal.run("doctor", **{name: value}).refused()
    assert sentence.startswith(f"{name}: ")


def test_the_doctor_says_what_to_do_about_a_redis_that_is_not_there(terminal: Terminal) -> None:
    url = f"redis://:{PASSWORD}@127.0.0.1:1/0"
    said = terminal.run("doctor", "--json", MIMAWARI_REDIS_URL=url)
    assert (said.code, said.err) == (1, "")
    assert PASSWORD not in said.out
    (bad,) = [check for check in json.loads(said.out) if not check["ok"]]
    assert (bad["name"], "MIMAWARI_REDIS_URL" in bad["advice"]) == ("Redis", True)


def test_a_redis_whose_address_is_none_is_refused_without_repeating_it(terminal: Terminal) -> None:
    sentence = terminal.run("why", "x", MIMAWARI_REDIS_URL=f"http://{PASSWORD}").refused()
    assert "MIMAWARI_REDIS_URL" in sentence
    assert PASSWORD not in sentence


def test_the_doctor_says_what_to_do_about_a_database_that_is_not_there(
    terminal: Terminal,
) -> None:
    said = terminal.run("doctor", "--json", DB_DSN=f"postgresql://me:{PASSWORD}@127.0.0.1:1/x")
    assert (said.code, said.err) == (1, "")
    assert PASSWORD not in said.out
    (bad,) = [check for check in json.loads(said.out) if not check["ok"]]
    assert (bad["name"], "MIMAWARI_DATABASE_URL" in bad["advice"]) == ("database", True)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("nonsense", 2),
        (f"oracle://me:{PASSWORD}@host/x", 2),
        (f"postgresql://me:{PASSWORD}@host:port/x", 2),
        (f"postgresql://me:{PASSWORD}@127.0.0.1:1/x", 1),
        ("sqlite://", 2),
    ],
)
def test_a_database_that_cannot_be_used_is_a_sentence_without_its_password(
    terminal: Terminal, url: str, code: int
) -> None:
    assert PASSWORD not in terminal.run("jobs", "ls", DB_DSN=url).refused(code)


@pytest.mark.parametrize("words", [("jobs", "ls"), ("db", "upgrade"), ("serve",)])
def test_a_data_folder_that_is_none_is_a_sentence(
    terminal: Terminal, words: tuple[str, ...]
) -> None:
    terminal.data.write_text("a file")
    assert str(terminal.data) in terminal.run(*words, MIMAWARI_PORT="0").refused()


def test_the_database_is_made_once_and_counted(terminal: Terminal) -> None:
    fresh = terminal.run("db", "info", "--json").json()
    assert (fresh["version"], "jobs" in fresh) == (None, False)
    first = terminal.run_program("db", "upgrade")
    assert (first.code, first.out) == (0, f"From version none to {fresh['needed']}.\n")
    second = terminal.run("db", "upgrade")
    assert (second.code, "Up to date already" in second.out) == (0, True)
    made = terminal.run("db", "info", "--json").json()
    assert (made["version"], made["jobs"]) == (fresh["needed"], 0)
    assert str(terminal.data) in terminal.run("db", "info").out


def test_a_backup_holds_every_row(filled: Terminal) -> None:
    said = filled.run("db", "backup")
    assert said.code == 0
    (copy,) = (filled.data / "backups").iterdir()
    assert said.out == f"The copy is {copy}\n"
    with closing(sqlite3.connect(copy)) as opened:
        assert opened.execute("SELECT count(*) FROM inbox").fetchone() == (3,)
        assert opened.execute("SELECT dedupe_key FROM jobs").fetchall() == [("a key",)]
        assert opened.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_there_is_no_backup_of_nothing(terminal: Terminal) -> None:
    assert "no database" in terminal.run("db", "backup").refused()
    assert not (terminal.data / "backups").exists()


def test_jobs_are_listed_newest_first_for_people_and_programs(filled: Terminal) -> None:
    pending, gone, dead, done = ids(filled, "ls")
    assert ids(filled, "ls", "--limit", "2") == [pending, gone]
    assert ids(filled, "ls", "--before", gone) == [dead, done]
    assert ids(filled, "ls", "--state", "done") == [done]
    assert ids(filled, "ls", "--kind", "nobody.runs") == []
    assert ids(filled, "dead") == [dead]
    shown = filled.run("jobs", "ls").out
    assert [word for word in re.findall("[0-9a-f-]{36}", shown)] == [pending, gone, dead, done]  # noqa: C416


def test_no_jobs_are_said_in_words(terminal: Terminal) -> None:
    assert terminal.run_program("jobs", "ls").out == "No such jobs.\n"
    assert terminal.run("jobs", "dead").out == "No dead letters. All is well.\n"


def test_one_job_is_shown_and_cannot_write_to_the_terminal(filled: Terminal) -> None:
    (pending,) = ids(filled, "ls", "--state", "pending")
    view = filled.run("jobs", "show", pending, "--json").json()
    assert (view["state"], view["args"]) == ("pending", {"text": HOSTILE})
    shown = filled.run("jobs", "show", pending).out
    assert "example:a" in shown
    assert "[red]a[/]" in shown
    assert not set(shown) & {"\x1b", "\x07"}


def test_a_dead_letter_is_brought_back_once(filled: Terminal) -> None:
    (dead,) = ids(filled, "dead")
    said = filled.run("jobs", "retry", dead)
    assert (said.code, said.out) == (0, f"{dead} waits again, with all its attempts.\n")
    assert ids(filled, "dead") == []
    assert "pending" in filled.run("jobs", "retry", dead).refused()


@pytest.mark.parametrize(
    "words",
    [
        ("jobs", "show", new_id()),
        ("jobs", "show", "x" * 200),
        ("jobs", "retry", "[red]x"),
        ("why", b"\xff\xfe"),
    ],
)
def test_an_unknown_id_is_a_sentence(filled: Terminal, words: tuple[str | bytes, ...]) -> None:
    assert "goes by the" in filled.run(*words).refused()


def test_why_explains_a_job(filled: Terminal) -> None:
    (pending,) = ids(filled, "ls", "--state", "pending")
    answer = filled.run("why", "a key", "--json").json()
    assert (answer["job_id"], answer["state"]) == (pending, "pending")
    shown = filled.run_program("why", pending)
    assert (shown.code, answer["reason"] in shown.out) == (0, True)


@pytest.mark.parametrize("words", [("jobs", "ls"), ("db", "upgrade"), ("serve",)])
def test_a_database_from_the_future_is_refused_and_left_alone(
    filled: Terminal, words: tuple[str, ...]
) -> None:
    path = filled.data / "mimawari.db"
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("UPDATE alembic_version SET version_num = '9999'")
    sentence = filled.run(*words, MIMAWARI_PORT="0").refused()
    assert "9999, which is newer than this program" in sentence
    with closing(sqlite3.connect(path)) as opened:
        assert opened.execute("SELECT version_num FROM alembic_version").fetchone() == ("9999",)


@pytest.mark.parametrize("words", [("frob",), ("jobs", "ls", "--limit", "0")])
def test_a_wrong_word_shows_how_it_is_used(terminal: Terminal, words: tuple[str, ...]) -> None:
    said = terminal.run(*words)
    assert (said.code, "Usage:" in said.err, "Traceback" in said.err) == (2, True, False)


@pytest.mark.parametrize("module", ["cli", "serve"])
def test_nothing_loads_what_only_answering_and_looking_need(module: str) -> None:
    heavy = ("fastapi", "uvicorn", "av", "yt_dlp", "streamlink", "playwright")
    script = f"import sys, mimawari.app.{module}; print([n for n in {heavy} if n in sys.modules])"
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert said.stdout == b"[]\n"
