"""The command that ranks: a board of any window, for people, programs and spreadsheets."""

import csv
import io
from datetime import datetime

import pytest
from rich.cells import cell_len

from mimawari.show import BARS
from tests.app.screen import Screen
from tests.app.terminal import Terminal
from tests.hot.cli_ground import FORMULA, HOSTILE_IP, HOUR, LIBRARIANS, POST


@pytest.mark.parametrize(
    ("board", "ranked"),
    [
        ("hot", [(POST, 2), (LIBRARIANS, 1), (HOSTILE_IP, 3), (FORMULA, None)]),
        ("inflow", [(LIBRARIANS, 2), (POST, 1), (HOSTILE_IP, 3), (FORMULA, None)]),
        ("outflow", [(POST, 2), (LIBRARIANS, 1), (HOSTILE_IP, 3), (FORMULA, None)]),
    ],
)
def test_a_board_ranks_by_what_it_is_told_beside_the_window_before(
    filled: Screen, board: str, ranked: list[tuple[int, int | None]]
) -> None:
    found = filled.run("top", "--type", board, "--json").json()
    entries = found["entries"]
    assert [(one["ip_id"], one["previous_rank"]) for one in entries] == ranked
    assert [one["rank"] for one in entries] == [1, 2, 3, 4]
    (post,) = [one for one in entries if one["ip_id"] == POST]
    assert (post["inflow"], post["outflow"], post["liquidity"]) == (2, 9, 4.5)
    hourly = post["hourly_outflow"]
    assert (len(hourly), [each for each in hourly if each is not None]) == (24, [9, 0])
    span = [datetime.fromisoformat(found["window"][name]) for name in ("start_at", "end_at")]
    assert span[1] - span[0] == 24 * HOUR
    assert (span[1].minute, span[1].second) == (0, 0)


def test_a_board_shows_movement_and_explains_its_marks(filled: Screen) -> None:
    said = filled.run("top")
    rows = [line.split() for line in said.out.splitlines() if line.strip()[:1] in set("1234")]
    assert [row[1] for row in rows] == ["▲1", "▼1", "=", "–"]
    assert rows[0][3:7] == ["9", "2", "4.50", "7.68"]
    assert rows[1][-1] == "capped"
    assert rows[3][-1] == "8/10"
    assert "capped: the last crawl stopped" in said.out
    assert "8/10 and the like" in said.out
    first = filled.run("top", "--limit", "1").out
    assert "capped" not in first
    assert "月夜" not in first


@pytest.mark.parametrize(("hours", "first", "sold"), [("24", POST, 9), ("168", LIBRARIANS, 12)])
def test_a_board_looks_back_as_far_as_it_is_told(
    filled: Screen, hours: str, first: int, sold: int
) -> None:
    words = ("top", "--type", "outflow", "--hours", hours)
    one = filled.run(*words, "--json").json()["entries"][0]
    assert (one["ip_id"], one["outflow"]) == (first, sold)
    assert len(one["hourly_outflow"]) == int(hours)
    assert f"{hours} whole hours" in filled.run(*words).out


def test_a_spreadsheet_runs_nothing_of_a_board(filled: Screen) -> None:
    said = filled.run("top", "--csv")
    rows = list(csv.DictReader(io.StringIO(said.out, newline="")))
    assert [row["name"] for row in rows] == [
        "星くず郵便",
        "月夜の図書係",
        "[red]a[/] \ufffd[31mb\ufffd 日本\n\u202e:x",
        "'=SUM(A1)",
    ]
    assert [row["previous_rank"] for row in rows] == ["2", "1", "3", ""]
    assert [row["capped_sold"] for row in rows] == ["false", "true", "false", "false"]


@pytest.mark.parametrize(
    "words",
    [
        ("--hours", "2"),
        ("--type", "cold"),
        ("--limit", "0"),
        ("--limit", "101"),
    ],
)
def test_a_board_that_there_is_not_shows_how_it_is_used(
    empty: Screen, words: tuple[str, ...]
) -> None:
    said = empty.run("top", *words)
    assert (said.code, "Usage:" in said.err) == (2, True)


def test_a_board_is_written_in_one_form_only(empty: Screen) -> None:
    assert "--json or --csv" in empty.run("top", "--json", "--csv").refused()


def test_no_line_of_bars_is_broken_on_a_terminal_of_a_hundred_columns(filled: Screen) -> None:
    said = Terminal(filled.data).run_program("hot", "top", COLUMNS="100")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert max(map(cell_len, lines)) <= 100
    post = lines[2]
    assert "█ ▁" in post
    assert sum(bool(set(line) & set(BARS)) for line in lines) == 4
