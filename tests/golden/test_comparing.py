"""How two responses are compared, and pages reduced to text."""

from typing import Any

import pytest

from tests.golden.comparing import list_differences
from tests.golden.keeping import compare, keep, load_kept
from tests.golden.pages import read_text
from tests.golden.reading import Responses


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, ["a.b[1]: 2 became 3"]),
        ({"a": 1}, {"a": 1.0}, ["a: 1 became 1.0"]),
        ({"a": 1}, {"a": True}, ["a: 1 became true"]),
        ({"a": 0}, {"a": None}, ["a: 0 became null"]),
        ({"a": 1}, {}, ["a: 1 is gone"]),
        ({}, {"a": 1}, ["a: 1 is new"]),
        ([1, 2, 3], [1, 3], ["[1]: 2 is gone"]),
        ([1, 3], [1, 2, 3], ["[1]: 2 is new"]),
        ([1, 2], [2, 1], ["[0]: 2 is new", "[1]: 2 is gone"]),
        (["a"], "a", [': ["a"] became "a"']),
    ],
)
def test_each_value_that_differs_is_named_with_its_path(
    old: Any, new: Any, said: list[str]
) -> None:
    assert list(list_differences(old, new)) == said


def test_a_cell_of_a_csv_is_named_by_its_row_and_column() -> None:
    old = {"columns": ["id", "name"], "rows": [["1", "a"], ["2", "b"], ["3", "c"]]}
    new = {"columns": ["id", "name"], "rows": [["1", "a"], ["2", "x"]]}
    assert list(list_differences(old, new, "csv")) == [
        'csv.row[1].name: "b" became "x"',
        'csv.row[2]: {"id": "3", "name": "c"} is gone',
    ]


def test_a_question_that_only_one_side_knows_is_a_difference() -> None:
    kept = {"api": {"/a": {"status": 200}, "/b": {"status": 200}}}
    found = {"api": {"/a": {"status": 404}, "/c": {"status": 200}}}
    assert compare(kept, found) == [
        "api: /a: status: 200 became 404",
        "api: /b: is not requested any more",
        "api: /c: has no kept response",
    ]


def test_responses_that_are_kept_are_read_again_as_they_were(tmp_path: Any) -> None:
    responses: Responses = {
        "api": {"/a": {"json": {"long": ["雪" * 50] * 9, "none": [], "nothing": {}, "n": 1.5}}},
        "pages": {"/": {"text": ["a", {"b": [None, True]}]}},
    }
    keep(responses, tmp_path)
    assert load_kept(tmp_path) == responses


def test_a_page_is_reduced_to_what_is_read_followed_and_sent() -> None:
    html = """<html><head><title>T</title><style>no</style></head><body><nav>frame</nav><main>
    <h1>One <b>two</b></h1><script>no</script><table><tr><td>a</td><td>b</td></tr></table>
    <p><a href="/x">link</a> <abbr title="why">※</abbr></p>
    <form method="post" action="/go"><input type="hidden" name="token" value="secret">
    <input name="n" value="5" min="1"><select name="s"><option value="1" selected>first</option>
    </select></form></main><footer>frame</footer></body></html>"""
    assert read_text(html, with_frame=False) == [
        "T",
        "One two",
        "a | b",
        "</x> link (why) ※",
        "[form post /go][token] [input n='5' min=1]",
        "[select s='']",
        "* 1: first",
    ]
    assert "frame" in read_text(html, with_frame=True)
