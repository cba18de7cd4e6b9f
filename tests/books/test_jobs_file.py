"""jobs.yaml is read as it is meant, refused with its lines, and written to be read again."""

import re
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mimawari.edges.yaml_lines import MOST_BYTES
from mimawari.errors import BadInput
from mimawari.text import clean
from mimawari.watches.books.jobs_file import parse_jobs, write_jobs
from mimawari.watches.books.models import (
    LONGEST_EVERY,
    MOST_MAILED,
    MOST_PER_RUN,
    SHORTEST_EVERY,
    Search,
)

FULL = """\
# Read every day unless a job says otherwise.
defaults:
  interval: 12h
  mail_limit: 5
jobs:
  - name: 新刊
    queries:
      - intitle:竜 OR inauthor:"山田"
      - '"machine learning"'
    enabled: no
    google_books: {printType: books, langRestrict: ja}
    interval: 7d
    mail_limit: 0
    max_per_run: 80
    recipients: [a@example.org, b@example.org]
  - {name: plain, queries: [python]}
"""
ONE = "jobs:\n- name: one\n  queries: [python]\n"


def refusal(text: str) -> str:
    """Return the sentence that a file is refused with."""
    with pytest.raises(BadInput) as caught:
        parse_jobs(text)
    told = str(caught.value)
    assert told.isprintable()
    return told


def test_a_job_is_read_with_all_that_stands_in_it_and_the_rest_from_the_defaults() -> None:
    first = Search(
        name="新刊",
        queries=('intitle:竜 OR inauthor:"山田"', '"machine learning"'),
        enabled=False,
        every_for=timedelta(days=7),
        mail_limit=0,
        max_per_run=80,
        print_type="books",
        lang_restrict="ja",
        recipients=("a@example.org", "b@example.org"),
    )
    second = Search(name="plain", queries=("python",), every_for=timedelta(hours=12), mail_limit=5)
    assert parse_jobs(FULL) == (first, second)


def test_what_nobody_says_is_as_usual() -> None:
    assert parse_jobs(ONE) == (Search(name="one", queries=("python",)),)
    assert parse_jobs(f"defaults: {{}}\n{ONE}") == parse_jobs(ONE)


@pytest.mark.parametrize(
    "text", ["jobs: []", "\ufeffjobs: []", "---\njobs: []\n...\n", "jobs:\r\n  []\r\n"]
)
def test_an_empty_list_gives_no_jobs(text: str) -> None:
    assert parse_jobs(text) == ()


def test_a_byte_order_mark_and_line_ends_of_other_systems_change_nothing() -> None:
    assert parse_jobs("\ufeff" + FULL.replace("\n", "\r\n")) == parse_jobs(FULL)


@pytest.mark.parametrize(
    "word", ["123", "no", "yes", "null", "on", "1e3", "0x10", "2026-01-01", "1_0", "007"]
)
def test_a_text_is_what_stands_there_whatever_yaml_takes_it_for(word: str) -> None:
    [job] = parse_jobs(f"jobs: [{{name: {word}, queries: [{word}, '{word}']}}]")
    assert (job.name, job.queries) == (word, (word, word))


def test_norwegian_is_a_language() -> None:
    [job] = parse_jobs(f"{ONE}  google_books: {{langRestrict: no}}\n")
    assert job.lang_restrict == "no"


@pytest.mark.parametrize(
    ("word", "enabled"),
    [
        *((word, True) for word in ("yes", "true", "on", "True", "ON")),
        *((word, False) for word in ("no", "false", "off", "False", "OFF")),
    ],
)
def test_a_job_is_switched_by_the_words_of_yaml(word: str, *, enabled: bool) -> None:
    [job] = parse_jobs(f"{ONE}  enabled: {word}\n")
    assert job.enabled is enabled


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("max_per_run: 0", "max_per_run: give 1 to 1000, not 0"),
        ("max_per_run: -5", "max_per_run: give 1 to 1000, not -5"),
        ("max_per_run: 99999999999999", "max_per_run: give 1 to 1000, not 99999999999999"),
        ("max_per_run: yes", "max_per_run: give a whole number like 20, not yes"),
        ("max_per_run: 010", "max_per_run: give a whole number like 20, not 010"),
        ("max_per_run: 1.5", "max_per_run: give a whole number like 20, not 1.5"),
        ("max_per_run:", "max_per_run: give a whole number like 20, not nothing"),
        ("mail_limit: [1]", "mail_limit: give a text, not a list"),
        ("mail_limit: 201", "mail_limit: give 0 to 200, not 201"),
        ("interval: 24", "interval: 24 has no unit; write it like 24h"),
        ("interval: '24'", "interval: 24 has no unit; write it like 24h"),
        ("interval: often", "interval: 'often' is no duration"),
        ("interval: 1s", "interval: give 1m to 365d, like 24h"),
        ("enabled: maybe", "enabled: give true or false, not maybe"),
        ("enabled: 1", "enabled: give true or false, not 1"),
        ("recipients: a@example.org", "recipients: give a list, not a@example.org"),
        ("recipients: [nobody]", "recipients: give at most 50 plain mail addresses"),
        ("google_books: ja", "give a mapping of printType, langRestrict, not ja"),
        ("google_books: {printType: BOOKS}", "printType is 'BOOKS'; give all, books, magazines"),
        ("google_books: {langRestrict: Klingon}", "langRestrict is 'Klingon'; give a code"),
        ("google_books: {lang: ja}", "lang is no key here; give printType, langRestrict"),
        ("every: 1d", "every is no key here; give name, queries, enabled, google_books, interval"),
        ("[a]: 1d", "a list is no key here; give name,"),
        ("<<: {}", "<< is no key here; give name,"),
        ("name: two", "name stands on line 2 too; keep one of them"),
        ("recipients: *all", "& and * stand for other text"),
        ("recipients: &all []", "& and * stand for other text"),
        ("recipients: !!python/tuple []", "! begins a tag"),
        ("\tenabled: no", "a tab stands here; indent with spaces"),
        ("enabled:\tno", "a tab stands here; indent with spaces"),
        ("recipients: [a", "this is no YAML"),
        ("enabled: 'no", "this is no YAML"),
        ("enabled: a: b", "this is no YAML"),
        (r'recipients: ["\UFFFFFFFF"]', "a number here is too large"),
        (r'recipients: ["a\0"]', "recipients: the character U+0000 cannot be kept"),
        ("# \x00", "the character U+0000 cannot be kept"),
        ("# \ud800", "the character U+D800 cannot be kept"),
    ],
    ids=ascii,
)
def test_what_is_wrong_is_said_with_its_line(line: str, said: str) -> None:
    assert refusal(f"{ONE}  {line}\n\n").startswith(f"jobs.yaml, line 4: {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1: it is empty; write jobs: [{name: new-books,"),
        ("\ufeff# nothing\n\n", "line 1: it is empty; write jobs:"),
        ("\n[]", "line 2: give a mapping of defaults, jobs, not a list"),
        ("hello", "line 1: give a mapping of defaults, jobs, not hello"),
        ("defaults: {}", "line 1: jobs is missing; write it like jobs: []"),
        ("jobs:\n", "line 1: jobs: give a list, not nothing; write jobs: [] for none"),
        ("jobs:\n  name: a", "line 2: jobs: give a list, not a mapping"),
        ("jobs:\n- python", "line 2: give a mapping of name, queries,"),
        ("jobs:\n- name: a", "line 2: queries is missing; write it like queries: ["),
        ("jobs:\n- queries: [a]", "line 2: name is missing; write it like name: new-books"),
        ("jobs:\n- name: a b\n  queries: [a]", "line 2: name: give 1 to 64 letters"),
        ("jobs:\n- name: a\n  queries: []", "line 3: queries: give 1 to 20 of them"),
        ("jobs:\n- name: a\n  queries: python", "line 3: queries: give a list, not python"),
        ("jobs:\n- name: a\n  queries:\n  - a\n  - b: c", "line 5: queries: give a text, not a"),
        ("jobs:\n- name: a\n  queries:\n  - 'a' OR b", "line 4: this is no YAML"),
        ("jobs: []\njobs: []", "line 2: jobs stands on line 1 too"),
        ("jobs: []\nmore: 1", "line 2: more is no key here; give defaults, jobs"),
        ("jobs: []\n---\njobs: []", "line 2: another document begins here"),
        ("defaults:\n  mail_limit: no\njobs: []", "line 2: mail_limit: give a whole number"),
        ("defaults:\n  name: a\njobs: []", "line 2: name is no key here; give interval,"),
    ],
    ids=ascii,
)
def test_a_file_of_another_shape_is_refused_with_what_to_write(text: str, said: str) -> None:
    assert refusal(text).startswith(f"jobs.yaml, {said}")


def test_two_jobs_of_one_name_are_told_with_both_lines() -> None:
    more = "- name: two\n  queries: [a]\n- queries: [b]\n  name: 'one'\n"
    told = refusal(ONE + more)
    assert told == (
        "jobs.yaml, line 7: name: one is the name of the job on line 2 too; give another"
    )


def test_all_errors_are_told_at_once_in_the_order_of_their_lines() -> None:
    told = refusal(f"{ONE}  mail_limit: x\n  zeal: 1\n- name: two\n  queries: [a]\n  interval: 3\n")
    assert [part.split(":")[0] for part in told.split("line ")[1:]] == ["4", "5", "8"]


def test_no_more_than_ten_errors_are_told() -> None:
    told = refusal("jobs:\n" + "- {name: '', queries: [a]}\n" * 25)
    assert told.count("give 1 to 64 letters") == 10
    assert told.endswith("; and 15 more")


@pytest.mark.parametrize(
    "line", ["enabled: {}", "interval: {}h", "max_per_run: {}", "google_books: {}", "a{}: 1"]
)
def test_a_long_text_is_cut_where_it_is_told(line: str) -> None:
    assert len(refusal(f"{ONE}  {line.format('9' * 900)}\n")) < 300


@pytest.mark.parametrize(
    "text",
    [
        "a" * (MOST_BYTES + 1),
        "あ" * (MOST_BYTES // 3 + 1),
        "\ud800" * (MOST_BYTES // 3 + 1),
    ],
    ids=["letters", "wide", "halves"],
)
def test_a_file_of_more_than_a_megabyte_is_refused(text: str) -> None:
    assert refusal(text) == "jobs.yaml: it is larger than 1 MB; write fewer jobs"


@pytest.mark.parametrize("piece", ["[", "- ", "{a: ", "? "])
def test_a_file_that_is_nested_too_deep_is_refused(piece: str) -> None:
    assert "line 1: this is nested too deep" in refusal(piece * 100_000)


def test_a_file_that_goes_on_for_too_many_entries_is_refused() -> None:
    assert "goes on too long; write less" in refusal("-\n" * 100_001)


def test_aliases_are_refused_before_they_grow() -> None:
    grown = "".join(f"a{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 20))
    assert refusal(f"a0: &a0 [x]\n{grown}").startswith("jobs.yaml, line 1: & and * stand for")


LETTERS = st.sampled_from("ab 竜𠮷\n\t\r\u2028\ufeff\u3000'\"#:-&*!|>%@`{}[],?~=<0123")
CLEAN = st.text(LETTERS | st.characters(), max_size=300).map(clean).filter(str.strip)
NAMES = st.from_regex(r"\w[\w.-]{0,63}", fullmatch=True) | st.sampled_from(["no", "1", "null"])
ADDRESSES = st.sampled_from(["a@example.org", "no@example.org", "1@example.org", "=@example.org"])
JOBS = st.builds(
    Search,
    name=NAMES,
    queries=st.lists(CLEAN, min_size=1, max_size=5).map(tuple),
    enabled=st.booleans(),
    every_for=st.timedeltas(SHORTEST_EVERY, LONGEST_EVERY)
    | st.integers(1, 8760).map(lambda hours: timedelta(hours=hours)),
    mail_limit=st.integers(0, MOST_MAILED),
    max_per_run=st.integers(1, MOST_PER_RUN),
    print_type=st.sampled_from([None, "all", "books", "magazines"]),
    lang_restrict=st.sampled_from([None, "ja", "no", "zh-TW"]),
    recipients=st.lists(ADDRESSES, max_size=3).map(tuple),
)


@given(jobs=st.lists(JOBS, max_size=4, unique_by=lambda job: job.name).map(tuple))
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_jobs_are_read_as_they_were_written(jobs: tuple[Search, ...]) -> None:
    assert parse_jobs(write_jobs(jobs)) == jobs


def test_jobs_are_written_in_full_and_to_be_read_by_people() -> None:
    assert (
        write_jobs(parse_jobs(FULL)[:1])
        == """\
jobs:
- name: 新刊
  queries:
  - intitle:竜 OR inauthor:"山田"
  - '"machine learning"'
  enabled: false
  google_books:
    printType: books
    langRestrict: ja
  interval: 7d
  mail_limit: 0
  max_per_run: 80
  recipients:
  - a@example.org
  - b@example.org
"""
    )


def test_no_jobs_are_written_as_an_empty_list() -> None:
    assert write_jobs([]) == "jobs: []\n"


PIECES = st.sampled_from(
    (
        *("jobs", "name", "queries", "defaults", "interval", "a", "竜", "0", "9", "~", "<<"),
        *(": ", ":\n", "\n", "  ", "- ", "? ", ", ", "[", "]", "{", "}", "|\n", ">", "#", "\t"),
        *('"', "'", "\\", "\\U", "%YAML ", "---\n", "&a ", "*a", "!"),
        *("\x00", "\x85", "\u2028", "\ufeff", "\ud800"),
    )
)


@given(text=st.lists(PIECES, max_size=40).map("".join) | st.text())
@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_any_text_gives_jobs_or_one_sentence(text: str) -> None:
    told = ""
    try:
        jobs = parse_jobs(text)
    except BadInput as error:
        told = str(error)
    else:
        assert parse_jobs(write_jobs(jobs)) == jobs
    assert not told or re.match(r"jobs\.yaml, line [0-9]+: .+\Z", told)
