"""Text for readers: nothing is broken where its language forbids it, nothing is cut in two."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.watches.books.wrapping import cut, one_run, strip_markup, width, wrap

steady = settings(deadline=None, derandomize=True, max_examples=500)
JA = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
EN = "Call me Ishmael. Some years ago, never mind how long, I went to sea."


@pytest.mark.parametrize(
    ("text", "columns", "lines"),
    [
        ("", 10, []),
        ("one two three", 7, ["one two", "three"]),
        ("one two three", 3, ["one", "two", "thr", "ee"]),
        ("  one   two  ", 20, ["one two"]),
        ("吾輩は猫である", 6, ["吾輩は", "猫であ", "る"]),
        # No line begins with what closes, nor ends with what opens.
        ("吾輩は猫。である", 8, ["吾輩は", "猫。であ", "る"]),
        ("吾輩「猫」です", 6, ["吾輩", "「猫」", "です"]),
        ("データベース", 7, ["データ", "ベース"]),
        ("チョット", 6, ["チョッ", "ト"]),
        # Words of Latin letters stay whole beside Japanese.
        ("新しいPythonの本", 10, ["新しい", "Pythonの本"]),
        ("a\u0301" * 4, 2, ["a\u0301a\u0301", "a\u0301a\u0301"]),
        ("👩\u200d💻👩\u200d💻", 4, ["👩\u200d💻", "👩\u200d💻"]),
    ],
)
def test_lines_end_where_the_language_allows(text: str, columns: int, lines: list[str]) -> None:
    assert wrap(text, columns) == lines


@steady
@given(st.text(alphabet="ab c。、「」本データー\u0301", max_size=200), st.integers(4, 40))
def test_wrapping_loses_nothing_and_keeps_to_its_columns(text: str, columns: int) -> None:
    lines = wrap(one_run(text), columns)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(width(line) <= columns and line == line.strip() for line in lines)


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [
        (EN, 100, EN),
        (EN, len(EN), EN),
        (JA, 30, "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当が…"),
        (JA, 20, "吾輩は猫である。名前はまだ無い。…"),
        (EN, 20, "Call me Ishmael.\u00a0…"),
        (EN, 40, "Call me Ishmael. Some years ago, never…"),
        (EN, 38, "Call me Ishmael. Some years ago…"),
        ("あいうえおかき、くけこさしすせそ", 12, "あいうえおかき…"),
        ("x" * 50, 20, "x" * 19 + "…"),
        ("e\u0301" * 20, 12, "e\u0301" * 5 + "…"),
        ("👩\u200d💻" * 10, 12, "👩\u200d💻" * 3 + "…"),
    ],
)
def test_text_is_cut_at_a_good_place(text: str, most: int, short: str) -> None:
    assert cut(text, most) == short
    assert len(short) <= max(most, len(EN))


@steady
@given(st.text(alphabet="ab .。、!本\u0301\u200d", max_size=300), st.integers(10, 100))
def test_what_is_cut_is_a_beginning_and_short_enough(text: str, most: int) -> None:
    short = cut(text, most)
    assert len(short) <= most
    assert short == text or text.startswith(short.removesuffix("…").removesuffix("\u00a0"))
    assert short == text or len(short) >= most * 3 // 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<p>One<br/>two</p><P CLASS='x'>three &amp; <b>four</b>", "One two three & four"),
        ("a < b > c", "a < b > c"),
        ("<script>x</script>", "<script>x</script>"),
        ("&lt;b&gt;", "<b>"),
        ("a\n\n\tb\u202e\u200f", "a b"),
    ],
)
def test_simple_markup_gives_way_to_its_words(text: str, words: str) -> None:
    assert strip_markup(text) == words
