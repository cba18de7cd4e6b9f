"""Text is made safe once, and durations are read as they are written."""

import re
import unicodedata
from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimawari.errors import BadInput
from mimawari.text import (
    clean,
    format_duration,
    one_line,
    parse_duration,
    parse_durations,
    plain_digits,
    whole_number,
)

steady = settings(deadline=None, derandomize=True)
ANY = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("日本 🦊\ttab\nline\r\n", "日本 🦊\ttab\nline\r\n"),
        ("a\x00b", "a\ufffdb"),
        ("\x1b[31mred\x07", "\ufffd[31mred\ufffd"),
        ("\x7f\x85\x9b31m", "\ufffd\ufffd\ufffd31m"),
        ("\ud800 \udfff", "\ufffd \ufffd"),
    ],
)
def test_what_no_store_or_terminal_can_hold_is_replaced(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@steady
@given(ANY)
def test_clean_text_can_be_stored_and_stays_as_it_is(text: str) -> None:
    cleaned = clean(text)
    cleaned.encode()
    assert len(cleaned) == len(text)
    assert clean(cleaned) == cleaned
    controls = {c for c in cleaned if unicodedata.category(c) in {"Cc", "Cs"}}
    assert controls <= {"\t", "\n", "\r"}


@steady
@given(ANY, st.integers(1, 50))
def test_one_line_is_one_line_and_never_longer_than_allowed(text: str, most: int) -> None:
    line = one_line(text, most=most)
    assert len(line) <= most
    assert len(line.splitlines()) <= 1
    assert line == " ".join(line.split())


def test_a_line_that_is_cut_shows_it() -> None:
    assert one_line("a  b\n\tc") == "a b c"
    assert one_line("abcdef", most=6) == "abcdef"
    assert one_line("abcdefg", most=6) == "abcde…"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("2d", 172800),
        ("1.5h", 5400),
        (" 250ms ", 0.25),
        ("1d1h1m1s", 90061),
        ("30s1m", 90),
    ],
)
def test_a_duration_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "5", "s", "5 m", "-5m", "+5m", "5M", "5w", "1h30", "1.h", ".5h", "1e3s", "m5"),
        *("5m,", "\uff15m", "5m\x00", "∞d", "1_0s", f"{'9' * 30}d", f"{'9' * 400}ms"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(BadInput, match="duration"):
        parse_duration(text)


@steady
@given(st.integers(0, timedelta.max.days * 86400))
def test_a_duration_is_read_as_it_was_written(seconds: int) -> None:
    span = timedelta(seconds=seconds)
    assert parse_duration(format_duration(span)) == span


@steady
@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36500)))
def test_a_written_duration_is_right_to_the_second(span: timedelta) -> None:
    written = format_duration(span)
    assert re.fullmatch(r"([0-9]+[dhms])+", written)
    assert abs(parse_duration(written) - span) <= timedelta(seconds=0.5)


@steady
@given(st.timedeltas(max_value=timedelta(0)))
def test_what_is_over_is_written_as_nothing(span: timedelta) -> None:
    assert format_duration(span) == "0s"


@steady
@given(ANY)
def test_any_text_is_a_duration_or_refused(text: str) -> None:
    with suppress(BadInput):
        assert parse_duration(text) >= timedelta(0)


def test_a_list_of_durations_is_read() -> None:
    assert parse_durations("5m 15m\t1h") == tuple(timedelta(minutes=n) for n in (5, 15, 60))
    assert parse_durations("  ") == ()
    with pytest.raises(BadInput):
        parse_durations("5m often")


@steady
@given(st.one_of(st.integers(-(10**39), 10**39), st.floats(), st.none(), st.booleans()))
def test_plain_digits_lets_everything_pass_that_is_no_text(value: object) -> None:
    assert plain_digits(value) is value


@steady
@given(st.integers(-(10**39), 10**39))
def test_a_whole_number_in_plain_digits_passes(number: int) -> None:
    assert plain_digits(str(number)) == str(number)


@pytest.mark.parametrize("text", ["", "-", "1_0", "+5", " 5", "5 ", "5\n", "5.0", "\uff15", "0x5"])
def test_digits_that_only_some_readers_take_for_a_number_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="plain digits"):
        plain_digits(text)


@pytest.mark.parametrize(("value", "whole"), [(60.0, 60), (-0.0, 0), (60, 60), (True, True)])
def test_a_number_without_a_fraction_is_whole(value: object, whole: object) -> None:
    assert whole_number(value) == whole
    assert type(whole_number(value)) is type(whole)


@pytest.mark.parametrize("value", [59.5, float("inf"), "60.0", None])
def test_what_is_not_whole_stays_for_others_to_refuse(value: object) -> None:
    assert whole_number(value) is value
