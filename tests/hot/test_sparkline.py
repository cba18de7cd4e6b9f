"""A sparkline tells how values rise and fall, and where there were none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.show import BARS, sparkline


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([], ""),
        ([0], "▁"),
        ([0, 0, 0], "▁▁▁"),
        ([5], "█"),
        ([0, 1, 2, 3, 4, 5, 6, 7], "▁▂▃▄▅▆▇█"),
        ([0, 10, 20, 30, 40, 50, 60, 70], "▁▂▃▄▅▆▇█"),
        ([1, 1_000_000], "▂█"),
        ([None], " "),
        ([None, None], "  "),
        ([None, 0, None, 7, None], " ▁ █ "),
        ([3, None, 3], "█ █"),
        ([-5, 0, 7], "▁▁█"),
    ],
)
def test_values_are_drawn_from_zero_up_and_what_is_unknown_is_a_gap(
    values: list[int | None], drawn: str
) -> None:
    assert sparkline(values) == drawn


@given(st.lists(st.none() | st.integers(0, 10**9), max_size=200))
def test_every_value_has_its_own_place_and_more_is_never_drawn_lower(
    values: list[int | None],
) -> None:
    drawn = sparkline(values)
    assert len(drawn) == len(values)
    assert [mark == " " for mark in drawn] == [value is None for value in values]
    pairs = [(value, mark) for value, mark in zip(values, drawn, strict=True) if value is not None]
    heights = [BARS.index(mark) for _, mark in sorted(pairs)]
    assert heights == sorted(heights)
    assert all((mark == BARS[0]) == (value == 0) for value, mark in pairs)
