"""Files of IPs with slips: bad rows are told with their line, and every text gets an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.watches.hot import import_file
from mimawari.watches.hot.import_file import MOST_BYTES, MOST_ROWS, Parsed, parse


def names(parsed: Parsed) -> list[str]:
    return [new.name for new in parsed.good]


def lines(parsed: Parsed) -> list[int]:
    return [row.line for row in parsed.bad]


@pytest.mark.parametrize(
    ("element", "says"),
    [
        ("1", "object"),
        ("null", "object"),
        ('"a"', "object"),
        ('[{"name": "x"}]', "object"),
        ("NaN", "object"),
        ("{}", "name"),
        ('{"name": ""}', "name"),
        ('{"name": " \\u3000 "}', "name"),
        ('{"name": null}', "name"),
        ('{"name": 5}', "name"),
        ('{"name": ["x"]}', "name"),
        ('{"keyword": "x"}', "name"),
        ('{"name": "%s"}' % ("x" * 201), "200"),
        ('{"name": "x", "keyword": "%s"}' % ("x" * 201), "keyword"),
        ('{"name": "x", "keyword": 1}', "keyword"),
        ('{"name": "x", "name_en": false}', "name_en"),
        ('{"name": "x", "colour": "red"}', "colour"),
        ('{"name": "x", "": 1}', "field"),
        ('{"name": "x", "weight": NaN}', "weight"),
        ('{"name": "x", "weight": Infinity}', "weight"),
        ('{"name": "x", "weight": -Infinity}', "weight"),
        ('{"name": "x", "weight": 1e999}', "weight"),
        ('{"name": "x", "weight": 0}', "weight"),
        ('{"name": "x", "weight": 0.09}', "weight"),
        ('{"name": "x", "weight": 4.01}', "weight"),
        ('{"name": "x", "weight": "1"}', "weight"),
        ('{"name": "x", "weight": true}', "weight"),
        ('{"name": "x", "weight": null}', "weight"),
        ('{"name": "x", "weight": 1%s}' % ("0" * 400), "weight"),
        ('{"name": "x", "weight": 1%s}' % ("0" * 5000), "JSON"),
        ('{"name": "x", "active": 1}', "active"),
        ('{"name": "x", "active": "true"}', "active"),
        ('{"name": "x", "tags": 1}', "tags"),
        ('{"name": "x", "tags": ["a", 1]}', "tags"),
        ('{"name": "x", "tags": {"a": 1}}', "tags"),
        ('{"name": "x", "tags": ["%s"]}' % ("x" * 51), "tags"),
        (json.dumps({"name": "x", "tags": ";".join(map(str, range(21)))}), "tags"),
        ('{"name": "x"', "JSON"),
        ('{"name": x}', "JSON"),
        ("{'name': 'x, y'}", "JSON"),
        ('{"name": "x",}', "JSON"),
        ('{"name": "x"}}', "comma"),
        ('{"name": "x"} {"name": "y"}', "comma"),
        ('{"name": "a\nb"}', "JSON"),
        ("", "comma"),
        ("nonsense", "JSON"),
        ("[" * 100_000 + "]" * 100_000, "JSON"),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_element_is_told_with_its_line_and_the_others_are_kept(
    element: str, says: str
) -> None:
    parsed = parse('[\n{"name": "first"},\n\n' + element + ',\n{"name": "last"}\n]', "json")
    if element == '{"name": "x"':
        # Where it ends cannot be told, so neither can where the next one begins.
        assert (names(parsed), lines(parsed)[0]) == (["first"], 4)
    else:
        assert (names(parsed), lines(parsed)) == (["first", "last"], [4])
    assert says in parsed.bad[0].message


@pytest.mark.parametrize(
    ("text", "kept", "bad"),
    [
        ("[", [], [1]),
        ("[\n\n", [], [3]),
        ('[\n{"name": "a"}', ["a"], [2]),
        ('[\n{"name": "a"},\n', ["a"], [3]),
        ('[\n{"name": "a"},\n{"name": "b', ["a"], [3, 3]),
        ('[\n{"name": "a"},\n]', ["a"], [3]),
        ('[,\n{"name": "a"}]', ["a"], [1]),
        ('[\r\n{"name": "a"},\r\n5\r\n]', ["a"], [3]),
        ('[\r{"name": "a"},\r5\r]', ["a"], [3]),
        ('{\n"ips":\n[5,\n{"name": "a"}, 6]\n}', ["a"], [3, 4]),
    ],
)
def test_a_list_with_a_slip_in_it_is_kept_as_far_as_it_can_be_read(
    text: str, kept: list[str], bad: list[int]
) -> None:
    parsed = parse(text, "json")
    assert (names(parsed), lines(parsed)) == (kept, bad)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ("x,k,0,yes", "weight"),
        ("x,k,NaN,yes", "weight"),
        ("x,k,1e0,yes", "weight"),
        ("x,k,1_0,yes", "weight"),
        ("x,k,１,yes", "weight"),  # noqa: RUF001 - a wide digit
        ("x,k,-1,yes", "weight"),
        ("x,k,1,perhaps", "active"),
        ("x,k,1,2", "active"),
        (",k,1,yes", "name"),
        ("x,k,1,yes,more", "quotation"),
        ("x" * 201 + ",k,1,yes", "200"),
        ("x," + "k" * 201 + ",1,yes", "keyword"),
        ('"x"y,k,1,yes', "quotation"),
        ("x" * 200_000 + ",k,1,yes", "quotation"),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_row_is_told_with_its_line_and_the_others_are_kept(row: str, says: str) -> None:
    text = f"name,keyword,weight,active\nfirst,,,\n\n{row}\nlast,,,TRUE\n"
    parsed = parse(text, "csv")
    assert (names(parsed), lines(parsed)) == (["first", "last"], [4])
    assert says in parsed.bad[0].message


def test_the_line_of_a_record_is_where_it_begins() -> None:
    text = 'name,keyword,weight\n"a\nb",one,1\n"c\r\n\r\nd",two,9\ne,three,9\n"f\n'
    parsed = parse(text, "csv")
    assert names(parsed) == ["a\nb"]
    assert lines(parsed) == [4, 7, 8]
    assert "never closed" in parsed.bad[-1].message


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('[{"name": "a"},\n{"name": "b"},\n{"name": "c", "keyword": " a "}]', "json"),
        ("name,keyword\na,\nb,\nc, a", "csv"),
    ],
)
def test_a_keyword_that_comes_twice_is_told_with_the_line_of_the_first(
    text: str, form: str
) -> None:
    parsed = parse(text, form)
    assert names(parsed) == ["a", "b"]
    first = {"json": 1, "csv": 2}[form]
    assert lines(parsed) == [first + 2]
    assert f"line {first} already" in parsed.bad[0].message


def test_a_keyword_of_a_bad_row_is_still_free() -> None:
    parsed = parse("name,weight\na,9\na,1\na,2", "csv")
    assert (names(parsed), lines(parsed)) == (["a"], [2, 4])
    assert "line 3" in parsed.bad[1].message


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('[{"name": "a\\u0000\\u001b[31m\\ud800b"}]', "json"),
        ("name\na\x00\x1b[31m\ud800b", "csv"),
    ],
)
def test_text_is_made_safe_on_its_way_in(text: str, form: str) -> None:
    assert names(parse(text, form)) == ["a\ufffd\ufffd[31m\ufffdb"]


@pytest.mark.parametrize("form", ["json", "csv"])
def test_ten_thousand_rows_are_taken_and_one_more_is_not(form: str) -> None:
    def written(count: int) -> str:
        rows = [f"ip {number}" for number in range(count)]
        if form == "csv":
            return "\n".join(["name", *rows])
        return json.dumps([{"name": row} for row in rows])

    assert len(parse(written(MOST_ROWS), form).good) == MOST_ROWS
    with pytest.raises(BadInput, match="10,000"):
        parse(written(MOST_ROWS + 1), form)


@pytest.mark.parametrize("letter", ["x", "界", "\ud800"])
def test_a_text_of_more_than_five_mebibytes_is_refused(letter: str) -> None:
    size = len(letter.encode("utf-8", "surrogatepass"))
    text = '[{"name": "' + letter * (MOST_BYTES // size - 20) + '"}]'
    assert lines(parse(text, "json")) == [1]
    with pytest.raises(BadInput, match="5 MiB"):
        parse(text + " " * MOST_BYTES, "json")


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("[" + "[" * 500_000, "json"),
        ("[" + '\\"' * 500_000, "json"),
        ('["' + '\\"' * 500_000, "json"),
        ("[" + "}" * 500_000, "json"),
        ("," * 1_000_000, "csv"),
        ("name\n" + '"' * 999_999, "csv"),
        ("name\n" + "," * 1_000_000, "csv"),
    ],
    ids=lambda text: text[:8],
)
def test_hostile_text_is_read_in_one_go(text: str, form: str) -> None:
    try:
        assert parse(text, form).good == ()
    except BadInput:
        assert form == "csv"


PIECES = st.sampled_from(
    [
        *'[]{},:;"\\|\n\r\t 0',
        *('"name"', '"ips"', '"weight"', '"tags"', "name", "keyword", "weight", "active", "tags"),
        *("NaN", "null", "true", '{"name": "a"}', "\ufeff", "\x00", "\ud800", "1e999", "é"),
    ]
)
ANY_TEXT = (
    st.text()
    | st.lists(PIECES, max_size=60).map("".join)
    | st.lists(PIECES, max_size=60).map(lambda some: "[" + "".join(some))
    | st.lists(PIECES, max_size=60).map(lambda some: "name,weight,tags\n" + "".join(some))
)


@given(ANY_TEXT, st.sampled_from(["json", "csv"]))
def test_any_text_is_read_or_refused_with_a_sentence(text: str, form: str) -> None:
    try:
        parsed = parse(text, form)
    except BadInput:
        return
    last = len(text.splitlines()) + 1
    assert all(1 <= row.line <= last and row.message for row in parsed.bad)
    for new in parsed.good:
        assert 0 < len(new.name) <= 200
        assert 0 < len(new.keyword) <= 200
        assert 0.1 <= new.weight <= 4.0
    assert len({new.keyword for new in parsed.good}) == len(parsed.good)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
WRITTEN = st.fixed_dictionaries({}, optional=dict.fromkeys((*import_file.FIELDS, "colour"), VALUES))


@given(st.lists(VALUES | WRITTEN, max_size=8), st.sampled_from([None, 1]))
def test_every_element_of_a_list_is_kept_or_told(values: list[object], indent: int | None) -> None:
    parsed = parse(json.dumps(values, indent=indent), "json")
    assert len(parsed.good) + len(parsed.bad) == len(values)
