"""Charts: gaps stay gaps, a value holds as long as it was measured for, and no text is markup."""

import re
from datetime import UTC, datetime, timedelta

from mimawari.web.draw import Frame, Series, chart

START = datetime(2026, 6, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
FRAME = Frame(start=START, end=START + 8 * HOUR, top=100)


def draw(one: Series) -> str:
    """Draw one series in a frame of eight hours."""
    return str(chart("a chart", [one], FRAME, lambda value: f"{value:g}", str))


def points(*values: float | None) -> list[tuple[datetime, float | None]]:
    """Make a point of each hour."""
    return [(START + place * HOUR, value) for place, value in enumerate(values)]


def test_a_step_ends_with_what_it_stands_for_and_begins_anew_after_a_gap() -> None:
    drawn = draw(Series(label="x", points=points(50, None, 100, 0), lasts=HOUR))
    paths = re.findall(r'<path class="line c1" d="([^"]+)"', drawn)
    assert paths == ["M56.0 103.0H138.0", "M220.0 10.0H302.0V196.0H384.0"]


def test_bars_of_two_series_stand_side_by_side_within_their_hour() -> None:
    for place, left in ((0, 64.2), (1, 97.0)):
        drawn = draw(
            Series(label="x", points=points(50), kind="bars", lasts=HOUR, place=(place, 2))
        )
        assert f'x="{left}" y="103.0" width="32.8"' in drawn


def test_a_band_is_as_wide_as_its_day_and_has_no_slope() -> None:
    drawn = draw(Series(label="x", points=points(100), low=points(50), kind="band", lasts=HOUR))
    assert 'points="56.0,10.0 138.0,10.0 138.0,103.0 56.0,103.0"' in drawn
    assert "<circle" not in drawn


def test_a_level_goes_from_side_to_side_and_nothing_is_none() -> None:
    assert 'd="M56 103.0H712"' in draw(Series(label="x", points=points(50), kind="level"))
    assert "line level" not in draw(Series(label="x", points=points(None), kind="level"))


def test_no_label_is_markup() -> None:
    drawn = draw(Series(label='<script>"', points=points(1), kind="dots"))
    assert "<script" not in drawn
    assert "&lt;script&gt;&quot;" in drawn
