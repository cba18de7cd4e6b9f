"""The commands of the hot watch, as a person and as a program use them."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.app.screen import Screen
from tests.hot.cli_ground import NEW, PARTLY, POST, SLEEPING


def test_help_names_every_command(empty: Screen) -> None:
    for words, names in (
        (("--help",), ("ip", "top", "crawl", "alerts")),
        (("ip", "--help"), ("add", "ls", "show", "rm", "import")),
    ):
        said = empty.run(*words)
        assert said.code == 0
        assert all(f" {name} " in said.out for name in names)


def test_nothing_is_said_in_words(empty: Screen) -> None:
    assert "ip add NAME" in empty.run("ip", "ls").out
    assert "Nothing was counted" in empty.run("top").out
    assert empty.run("alerts").out.startswith("No alerts.")
    for words in (("ip", "ls"), ("alerts",)):
        assert empty.run(*words, "--json").json() == []
    assert empty.run("top", "--json").json()["entries"] == []


def test_an_ip_is_added_and_crawled_at_once(empty: Screen) -> None:
    options = ("--name-en", "Frieren", "--weight", "2", "--tag", "a", "--tag", "b")
    said = empty.run("ip", "add", " 葬送 ", *options)
    assert (said.code, said.out) == (0, "IP 1, 葬送, is crawled as soon as a worker is free.\n")
    (ip,) = empty.run("ip", "ls", "--json").json()
    assert (ip["name"], ip["keyword"], ip["name_en"]) == ("葬送", "葬送", "Frieren")
    assert (ip["weight"], ip["tags"], ip["active"]) == (2.0, ["a", "b"], True)
    assert (ip["every_seconds"], ip["why"]["reason"]) == (3600.0, "first run")
    assert datetime.fromisoformat(ip["created_at"]).utcoffset() == timedelta(0)


def test_an_inactive_ip_is_kept_and_not_crawled(empty: Screen) -> None:
    assert "not crawled yet" in empty.run("ip", "add", "a", "--keyword", "k", "--inactive").out
    (ip,) = empty.run("ip", "ls", "--json").json()
    assert (ip["keyword"], ip["active"], ip["why"]) == ("k", False, None)
    assert "not active" in empty.run("ip", "ls").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("",), "name"),
        ((" ",), "name"),
        (("x" * 201,), "200"),
        (("x", "--keyword", "k" * 201), "keyword"),
        (("x", "--weight", "nan"), "weight"),
        (("x", "--weight", "0"), "weight"),
        (("x", "--weight", "4.1"), "weight"),
        (("x", "--tag", "t" * 51), "tags"),
        (("x", "--keyword", " 星くず "), "IP 1 has the keyword"),
    ],
)
def test_an_ip_that_cannot_be_is_refused_with_a_sentence(
    filled: Screen, words: tuple[str, ...], says: str
) -> None:
    assert says in filled.run("ip", "add", *words).refused()
    assert len(filled.run("ip", "ls", "--json").json()) == len(NEW)


def test_ips_are_listed_by_id_a_page_at_a_time(filled: Screen) -> None:
    def ids(*words: str) -> list[int]:
        return [ip["id"] for ip in filled.run("ip", "ls", *words, "--json").json()]

    assert ids() == [1, 2, 3, 4, 5]
    assert ids("--limit", "2") == [1, 2]
    assert ids("--limit", "2", "--after", "2") == [3, 4]
    assert ids("--search", "stardust") == [POST]
    assert ids("--search", "mail") == [POST]
    assert ids("--search", "%") == []
    assert "--after 2" in filled.run("ip", "ls", "--limit", "2").out
    assert "--after" not in filled.run("ip", "ls").out


def test_a_list_says_how_often_when_next_and_how_much_was_seen(filled: Screen) -> None:
    said = filled.run("ip", "ls", "--search", "月夜")
    words = " ".join(said.out.split())
    assert all(each in words for each in ("10/10", "capped", "1h", "first", "run"))
    capped, partly = (
        filled.run("ip", "ls", "--search", name, "--json").json()[0]["coverage"]
        for name in ("月夜", "formula")
    )
    assert (capped["capped_sold"], capped["capped_on_sale"]) == (True, False)
    assert (partly["pages_read"], partly["pages_asked"]) == (8, 10)


def test_an_ip_is_shown_whole(filled: Screen) -> None:
    said = filled.run("ip", "show", "2")
    assert (said.code, said.err) == (0, "")
    for each in ("月夜の図書係", "so every 1h", "10/10 pages, capped", "first run"):
        assert each in said.out
    (listed,) = [line for line in said.out.splitlines() if line.startswith("listed")]
    bars = listed.split("▕")[1].split("▏")[0]
    # What was listed 30 and 5 hours ago, and nothing drawn in between.
    assert (len(bars), bars.replace(" ", "")) == (48, "▄█")
    assert "▄" + " " * 24 + "█" in bars
    assert "4 in 2 of 48 hours" in listed
    assert "2.50 sold for each one listed" in said.out
    assert "60 items" not in said.out


def test_an_ip_is_shown_whole_to_programs(filled: Screen) -> None:
    shown = filled.run("ip", "show", "4", "--json").json()
    assert (shown["name"], shown["why"]["state"]) == ("=SUM(A1)", "scheduled")
    assert [hour["inflow"] for hour in shown["hours"]] == [1]
    assert [crawl["inflow"] for crawl in shown["crawls"]] == [1, 0]
    assert shown["crawls"][0]["coverage"]["page_errors"] == list(PARTLY.page_errors)
    assert shown["alerts"] == []
    (alert,) = filled.run("ip", "show", "2", "--json").json()["alerts"]
    assert (alert["kind"], alert["level"], alert["is_open"]) == ("surge", "critical", True)


def test_what_was_never_crawled_says_so(filled: Screen) -> None:
    said = filled.run("ip", "show", str(SLEEPING)).out
    for each in ("It has not been crawled yet.", "No open alerts.", "not active", "not yet"):
        assert each in said


def test_an_ip_is_forgotten_only_when_asked_twice(filled: Screen) -> None:
    said = filled.run("ip", "rm", "1")
    assert (said.code, said.err) == (1, "")
    assert "星くず郵便 would be forgotten, with 27 items and 3 hours" in said.out
    assert len(filled.run("ip", "ls", "--json").json()) == len(NEW)
    said = filled.run("ip", "rm", "1", "--yes")
    assert (said.code, "is forgotten" in said.out) == (0, True)
    assert [ip["id"] for ip in filled.run("ip", "ls", "--json").json()] == [2, 3, 4, 5]
    assert "no IP has the id 1" in filled.run("ip", "rm", "1", "--yes").refused()


@pytest.mark.parametrize(
    "words", [("ip", "show"), ("ip", "rm"), ("crawl",), ("crawl", "--now"), ("alerts", "--ack")]
)
def test_an_unknown_id_is_a_sentence_and_a_wrong_one_shows_how_it_is_used(
    filled: Screen, words: tuple[str, ...]
) -> None:
    assert "has the id 99" in filled.run(*words, "99").refused()
    for wrong in ("0", str(2**31), "x"):
        said = filled.run(*words, wrong)
        assert (said.code, "Usage:" in said.err) == (2, True)


CSV = "name;keyword;weight\n新しい;;2\n星くず郵便;星くず;1\nbad;;9\n[red]bad[/];[blue];x\n"


def test_a_file_is_taken_with_its_bad_rows_told(filled: Screen) -> None:
    file = filled.written("ips.csv", CSV)
    said = filled.run("ip", "import", file, "--dry-run")
    assert (said.code, "Nothing was changed" in said.out) == (1, True)
    assert "1 added, 1 updated, 2 left out as bad" in said.out
    assert len(filled.run("ip", "ls", "--json").json()) == len(NEW)
    said = filled.run("ip", "import", file)
    assert (said.code, said.err) == (1, "")
    assert [line.split()[0] for line in said.out.splitlines()] == ["line", "4", "5", "1"]
    found = {ip["keyword"]: ip for ip in filled.run("ip", "ls", "--json").json()}
    assert (found["新しい"]["weight"], len(found)) == (2.0, len(NEW) + 1)
    assert (found["星くず"]["id"], found["星くず"]["name_en"]) == (POST, "Stardust Post")


def test_a_file_without_bad_rows_ends_well(empty: Screen) -> None:
    file = empty.written("ips.JSON", '{"ips": [{"name": "a"}, {"name": "b"}]}')
    said = empty.run("ip", "import", file)
    assert (said.code, said.out, said.err) == (0, "2 added, 0 updated.\n", "")
    odd = empty.written("list.txt", "name\nc")
    assert "--format" in empty.run("ip", "import", odd).refused()
    assert empty.run("ip", "import", odd, "--format", "csv").out == "1 added, 0 updated.\n"


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", "nonsense", "list"),
        ("a.csv", "nonsense", "first line"),
        ("a.csv", "name\n日本".encode("shift_jis"), "(line 2); save it as UTF-8"),
        ("a.json", b" " * (5 * 1024 * 1024 + 1), "5 MiB"),
        ("a.json", "name\n" * 2, "list"),
    ],
)
def test_a_file_that_is_none_is_refused_with_a_sentence(
    empty: Screen, name: str, content: str | bytes, says: str
) -> None:
    assert says in empty.run("ip", "import", empty.written(name, content)).refused()


def test_a_file_that_is_not_there_is_a_sentence(empty: Screen, tmp_path: Path) -> None:
    assert "No such file" in empty.run("ip", "import", str(tmp_path / "a.csv")).refused()
    assert "directory" in empty.run("ip", "import", str(tmp_path), "--format", "csv").refused()


def test_a_crawl_waits_for_its_time_unless_told_not_to(filled: Screen) -> None:
    said = filled.run("crawl", "2")
    assert (said.code, "first run" in said.out, "--now" in said.out) == (0, True, True)
    made = filled.run("crawl", "2", "--now")
    assert (made.code, made.out.startswith("Job ")) == (0, True)
    job_id = made.out.split()[1]
    again = filled.run("crawl", "2", "--now")
    assert again.code == 0
    assert f"job {job_id} is pending already" in again.out
    assert "waits for a free worker" in again.out
    assert job_id in filled.run("ip", "show", "2").out


def test_an_inactive_ip_is_crawled_when_asked_for(filled: Screen) -> None:
    assert "not active" in filled.run("crawl", str(SLEEPING)).out
    assert filled.run("crawl", str(SLEEPING), "--now").out.startswith("Job ")


def test_alerts_are_listed_and_acknowledged_once(filled: Screen) -> None:
    (alert,) = filled.run("alerts", "--json").json()
    assert (alert["kind"], alert["closed_at"], alert["acknowledged_at"]) == ("surge", None, None)
    assert alert["message"].startswith("2.50 sold for each one listed")
    ids = [each["id"] for each in filled.run("alerts", "--all", "--json").json()]
    assert ids == sorted(ids, reverse=True)
    assert len(ids) == 2
    assert len(filled.run("alerts", "--all", "--limit", "1", "--json").json()) == 1
    assert "over" in filled.run("alerts", "--all").out
    alert_id = str(alert["id"])
    assert filled.run("alerts", "--ack", alert_id).out == f"Alert {alert_id} is acknowledged.\n"
    at = filled.run("alerts", "--ack", alert_id, "--json").json()["acknowledged_at"]
    assert "was acknowledged before" in filled.run("alerts", "--ack", alert_id).out
    (alert,) = filled.run("alerts", "--json").json()
    assert alert["acknowledged_at"] == at


@pytest.mark.parametrize(
    "words", [("top",), ("ip", "ls"), ("ip", "show", "3"), ("crawl", "3"), ("ip", "rm", "3")]
)
def test_a_name_cannot_write_to_the_terminal(filled: Screen, words: tuple[str, ...]) -> None:
    shown = filled.run(*words).out
    assert "[red]a[/]" in "".join(shown.split()) or "[red]a" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
