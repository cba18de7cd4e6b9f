"""The commands of the books watch, as a person and as a program use them."""

import json
from pathlib import Path
from typing import Any

import pytest

from mimawari.ids import new_id
from mimawari.kernel.clock import RealClock
from mimawari.kernel.ports import Tx
from mimawari.settings import DEFAULTS
from mimawari.sites.google_books.replies import parse_volumes
from mimawari.store.sql import SqlStore
from mimawari.store.sql.migrate import upgrade
from mimawari.watches.books import collecting, jobs, mailing
from mimawari.watches.books.collecting import Step
from mimawari.watches.books.models import Run, Search
from tests.app.filled import Behind
from tests.app.screen import Screen
from tests.app.terminal import Terminal
from tests.books.scene import volume
from tests.net.post_office import ANN

HOSTILE = "[red]a[/] \x1b[31mb\x07 日本\n\u202e:x"
UNKNOWN = "no job goes by the name 'nobody'; `mimawari books job ls` lists them"
JOBS = """\
defaults:
  interval: 12h
  max_per_run: 80
jobs:
  - name: consultant-books
    queries: ['intitle:コンサルティング', 'subject:Business']
    google_books: {printType: books, langRestrict: ja}
  - name: quiet
    queries: ['inauthor:巡田']
    enabled: false
    mail_limit: 0
    recipients: [ann@example.com]
"""


async def find(tx: Tx, search: Search, volumes: list[dict[str, Any]], total: int) -> None:
    """Keep a job with a run of one page."""
    now = RealClock().now()
    job = await jobs.add_job(tx, search, DEFAULTS, now)
    digits = job.query_set_hash
    run = Run(id=new_id(), job_id=job.id, query_set_hash=digits, is_dry=False, started_at=now)
    reply = {"kind": "books#volumes", "totalItems": total, "items": volumes}
    page = parse_volumes(json.dumps(reply).encode())
    await collecting.keep_page(tx, Step(job=job, cursor=None, run=run), page, 9, now)


async def fill(data: Path) -> None:
    """Keep a job that goes on, one that is exhausted, and a digest of a book of each."""
    store = SqlStore(f"sqlite:///{data}/mimawari.db", RealClock())
    await upgrade(store.database)
    named, numbered, unnumbered = volume(1), volume(2), volume(3, isbn=False)
    named["volumeInfo"]["title"] = HOSTILE
    stars = Search(name="stars", queries=("intitle:星",), max_per_run=2, mail_limit=1)
    few = Search(name="few", queries=("intitle:few",), recipients=(ANN,))
    settings = DEFAULTS.model_copy(update={"mail_to": (ANN,)})
    async with store.edit() as tx:
        await find(tx, stars, [numbered, unnumbered, named], 100)
        await find(tx, few, [volume(4)], 1)
        assert await mailing.put_digests(tx, settings, RealClock().now()) == [2]
    await store.close()


@pytest.fixture(scope="module")
def behind() -> Behind:
    """What the screens of this watch have behind them."""
    return Behind("books", fill)


@pytest.fixture(scope="module")
def untouched(behind: Behind, filled_once: Path) -> Screen:
    """A screen on the folder itself, for commands that change nothing."""
    return behind.open(filled_once)


def test_a_job_is_added_shown_changed_switched_and_forgotten(empty: Screen) -> None:
    added = empty.run("job", "add", "stars", "--query", "a", "--query", "[red]b[/]")
    assert added.out == "Job stars is due now. `mimawari books run-due` runs what is due.\n"
    shown = empty.run("job", "show", "stars").out
    assert "queries    a OR [red]b[/]\n" in shown
    assert "It has not run yet." in shown
    changed = empty.run("job", "update", "stars", "--interval", "2h", "--lang-restrict", "ja")
    assert "interval   2h\n" in changed.out
    assert empty.run("job", "disable", "stars").out == "Job stars is not run any more.\n"
    assert "`mimawari books job enable stars` has it run" in empty.run("job", "show", "stars").out
    assert empty.run("job", "enable", "stars").out == "Job stars is run when it is due.\n"
    [found] = empty.run("job", "ls", "--json").json()
    assert (found["job"]["enabled"], found["job"]["queries"]) == (True, ["a", "[red]b[/]"])
    assert found["next"]["state"] == "scheduled"
    assert "job rm stars --yes" in empty.run("job", "rm", "stars").refused()
    assert empty.run("job", "rm", "stars", "--yes").out == "Job stars is forgotten.\n"
    assert "job add NAME --query WORDS" in empty.run("job", "ls").out


def test_a_job_that_is_added_disabled_is_not_due(empty: Screen) -> None:
    added = empty.run("job", "add", "later", "--query", "a", "--disabled")
    assert "Job later is not run yet." in added.out
    assert empty.run("run-due").out.startswith("No job is due.")


@pytest.mark.parametrize(
    ("name", "words", "sentence"),
    [
        ("a", (), "say what to search for: --query"),
        ("a", ("--query", " "), "queries: give 1 to 20 of them, none empty"),
        ("a", ("--query", "x", "--interval", "soon"), "'soon' is no duration; write it like"),
        ("a", ("--query", "x", "--interval", "10s"), "interval: give 1m to 365d, like 24h"),
        ("a b", ("--query", "x"), "name: give 1 to 64 letters, digits"),
        ("a\x1b[31m", ("--query", "x"), "name: give 1 to 64 letters, digits"),
        ("a", ("--query", "x", "--max-per-run", "0"), "max_per_run: give 1 to 1000, not 0"),
        ("a", ("--query", "x", "--mail-limit", "-1"), "mail_limit: give 0 to 200, not -1"),
        ("a", ("--query", "x", "--print-type", "tapes"), "give all, books, magazines"),
        ("a", ("--query", "x", "--lang-restrict", "ja pan"), "give a code such as ja"),
        ("a", ("--query", "x", "--to", "ann"), "recipients: give at most 50 plain mail"),
        ("stars", ("--query", "x"), "a job named 'stars' is there already"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_with_a_sentence(
    untouched: Screen, name: str, words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in untouched.run("job", "add", name, *words).refused()
    assert len(untouched.run("job", "ls", "--json").json()) == 2


@pytest.mark.parametrize(
    "words",
    [
        ("job", "show", "nobody"),
        ("job", "update", "nobody", "--interval", "2h"),
        ("job", "enable", "nobody"),
        ("job", "disable", "nobody"),
        ("job", "rm", "nobody"),
        ("job", "cursor", "reset", "nobody", "--yes"),
        ("mail", "reset", "nobody", "--yes"),
        ("ls", "--job", "nobody"),
    ],
)
def test_of_an_unknown_job_it_is_said_where_to_find_them(
    untouched: Screen, words: tuple[str, ...]
) -> None:
    assert untouched.run(*words).refused() == UNKNOWN


def test_a_change_that_names_nothing_or_nonsense_changes_nothing(untouched: Screen) -> None:
    before = untouched.run("job", "export").out
    assert untouched.run("job", "update", "stars").refused().startswith("nothing to change")
    refused = untouched.run("job", "update", "stars", "--max-per-run", "1001").refused()
    assert refused == "max_per_run: give 1 to 1000, not 1001"
    assert untouched.run("job", "export").out == before


def test_jobs_are_imported_and_exported_whole(empty: Screen) -> None:
    file = empty.written("jobs.yaml", JOBS)
    assert empty.run("job", "import", file).out == "2 jobs added, 0 changed.\n"
    exported = empty.run("job", "export").out
    for words in ("interval: 12h", "max_per_run: 80", "langRestrict: ja", "inauthor:巡田"):
        assert words in exported
    empty.run("job", "update", "quiet", "--query", "other")
    empty.run("job", "rm", "consultant-books", "--yes")
    again = empty.written("again.yaml", exported)
    assert empty.run("job", "import", again).out == "1 jobs added, 1 changed.\n"
    assert empty.run("job", "export").out == exported


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (JOBS.replace("enabled: false", "enabled: perhaps"), "line 10: enabled: give true or"),
        (JOBS.replace("name: quiet", "name: consultant-books"), "line 8: name: consultant-books"),
        (b"jobs: \xff", "jobs.yaml is not in UTF-8; save it so"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_line_and_changes_nothing(
    untouched: Screen, content: str | bytes, sentence: str, tmp_path: Path
) -> None:
    before = untouched.run("job", "export").out
    file = Screen(tmp_path / "data", "books").written("jobs.yaml", content)
    assert sentence in untouched.run("job", "import", file).refused()
    assert untouched.run("job", "export").out == before


def test_a_file_that_is_not_there_is_named(untouched: Screen, tmp_path: Path) -> None:
    refused = untouched.run("job", "import", f"{tmp_path}/none.yaml").refused()
    assert refused.startswith(f"{tmp_path}/none.yaml: No such file")


def test_cursors_are_listed_and_reset_only_with_yes(filled: Screen) -> None:
    before = filled.run("job", "cursor", "ls", "--json").json()
    places = {one["job_name"]: (one["start_index"], one["is_exhausted"]) for one in before}
    assert places == {"stars": (3, False), "few": (1, True)}
    assert before[0]["query_set_hash"][:16] in filled.run("job", "cursor", "ls").out
    refused = filled.run("job", "cursor", "reset", "few").refused()
    assert refused.startswith("nothing was changed")
    assert refused.endswith("mimawari books job cursor reset few --yes")
    assert filled.run("job", "cursor", "ls", "--json").json() == before
    done = filled.run("job", "cursor", "reset", "few", "--yes")
    assert (done.code, done.out) == (0, "Reset 1 cursor(s) for job: few\n")
    [left] = filled.run("job", "cursor", "ls", "--json").json()
    assert left["job_name"] == "stars"


def test_jobs_are_listed_with_where_they_stand_and_shown_with_why(untouched: Screen) -> None:
    lines = untouched.run("job", "ls").out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", "few", "stars"]
    assert lines[1].split()[2:7] == ["1", "of", "1", "1", "exhausted"]
    assert lines[2].split()[2:7] == ["3", "of", "100", "3", "max_per_run"]
    shown = untouched.run("job", "show", "few").out
    assert "`mimawari books job cursor reset few --yes` begins anew" in shown
    whole = untouched.run("job", "show", "stars", "--json").json()
    assert [run["stop_reason"] for run in whole["runs"]] == ["max_per_run"]
    assert len(whole["query_set_hash"]) == 64


def test_books_are_listed_of_all_jobs_and_of_one(untouched: Screen) -> None:
    everything = untouched.run("ls", "--json").json()
    assert {one["first_job"] for one in everything} == {"stars", "few"}
    [book] = untouched.run("ls", "--job", "few", "--json").json()
    assert book["title"] == "Book 4"
    shown = untouched.run("ls").out
    assert "[red]a[/]" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert len(untouched.run("ls", "--limit", "1", "--json").json()) == 1


def test_digests_are_listed_and_without_a_mail_server_it_is_said(untouched: Screen) -> None:
    shown = untouched.run("mail", "status").out
    assert "pending" in shown
    assert "1 books wait for the next digest." in shown
    assert "No mail is sent: no mail server is set; set MIMAWARI_SMTP_HOST." in shown
    told = untouched.run("mail", "status", "--json").json()
    assert (told["mails"][0]["recipients"], told["waiting"]) == ([ANN], 1)
    assert told["why_not"] == "no mail server is set; set MIMAWARI_SMTP_HOST"


def test_what_was_mailed_is_forgotten_only_with_yes(filled: Screen) -> None:
    refused = filled.run("mail", "reset", "stars").refused()
    assert refused.startswith("nothing was changed")
    assert filled.run("mail", "status", "--json").json()["waiting"] == 1
    done = filled.run("mail", "reset", "few", "--yes")
    assert (done.code, done.out) == (0, "Reset 1 book(s) for job: few\n")
    assert filled.run("mail", "status", "--json").json()["waiting"] == 2


def test_the_next_digest_is_shown_as_text_and_as_a_page(untouched: Screen, tmp_path: Path) -> None:
    text = untouched.run("mail", "preview")
    assert (text.code, "[red]a[/]" in text.out, "\x1b" in text.out) == (0, True, False)
    page = tmp_path / "next.html"
    said = untouched.run("mail", "preview", "--html", str(page))
    assert (said.code, said.out.endswith("next.html\n")) == (0, True)
    assert "[red]a[/]" in page.read_text("utf-8")
    nowhere = untouched.run("mail", "preview", "--html", f"{tmp_path}/none/next.html").refused()
    assert nowhere.startswith(f"{tmp_path}/none/next.html: No such file")


def test_of_nothing_it_is_said_that_there_is_nothing(empty: Screen) -> None:
    for words, sentence in (
        (("ls",), "No books yet."),
        (("job", "cursor", "ls"), "No cursors yet;"),
        (("mail", "preview"), "Nothing waits to be mailed."),
        (("run-due",), "No job is due."),
        (("job", "export"), "jobs: []"),
    ):
        said = empty.run(*words)
        assert (said.code, said.out.startswith(sentence)) == (0, True)
    assert empty.run("run-due", "--json").json() == {"runs": [], "mails": []}


def test_the_doctor_says_what_is_missing_and_what_to_do(untouched: Screen) -> None:
    said = untouched.run("doctor", "--json")
    found = {one["name"]: one for one in json.loads(said.out)}
    missing = {name for name, one in found.items() if not one["ok"]}
    assert (said.code, missing) == (1, {"API key", "mail server"})
    assert "MIMAWARI_BOOKS_KEY" in found["API key"]["advice"]
    assert "MIMAWARI_SMTP_HOST" in found["mail server"]["advice"]
    assert found["jobs"]["found"] == "2 jobs, 2 enabled, exhausted: few"
    shown = untouched.run("doctor", MIMAWARI_BOOKS_KEY="x", MIMAWARI_BOOKS_CALLS="0")
    assert (shown.code, "0 of 0 calls today" in shown.out) == (1, True)


def test_dre_is_the_same_program_without_the_word_books(filled: Screen) -> None:
    said = Terminal(filled.data).run_program("job", "ls", "--json", program="dre")
    assert said.json() == filled.run("job", "ls", "--json").json()


def test_dre_names_itself_in_what_it_tells_to_type(filled: Screen) -> None:
    said = Terminal(filled.data).run_program("job", "nosuch", program="dre")
    assert (said.code, said.err.splitlines()[:2]) == (
        2,
        ["Usage: dre job [OPTIONS] COMMAND [ARGS]...", "Try 'dre job --help' for help."],
    )
