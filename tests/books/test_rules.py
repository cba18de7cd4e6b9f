"""When a run stops, and where the next one goes on."""

import pytest

from mimawari.watches.books import rules
from mimawari.watches.books.models import Reading, Returned, StopReason


def page(volumes: int, total: int | None, with_isbn: int | None = None) -> Returned:
    isbns = volumes if with_isbn is None else with_isbn
    return Returned(volumes=volumes, with_isbn=isbns, total_items=total)


@pytest.mark.parametrize(
    ("wanted", "collected", "size"), [(7, 0, 7), (10, 3, 7), (100, 0, 40), (100, 80, 20)]
)
def test_never_more_is_asked_for_than_is_wanted(wanted: int, collected: int, size: int) -> None:
    assert rules.page_size(wanted, collected) == size


def test_the_next_page_begins_behind_all_volumes_also_those_without_an_isbn() -> None:
    after = rules.go_on(Reading(start_index=40, collected=30, page=1), page(40, 200, 25))
    assert after == Reading(start_index=80, collected=55, page=2)


@pytest.mark.parametrize(
    ("start", "returned", "stop"),
    [
        (0, page(40, 150), None),
        (110, page(40, 150), StopReason.EXHAUSTED),
        (0, page(0, 0), StopReason.EXHAUSTED),
        (80, page(0, 1_000_000), StopReason.EXHAUSTED),
        (80, page(0, None), None),
        (80, page(40, 90), StopReason.EXHAUSTED),
        (80, page(40, 1_000_000), None),
        (80, page(40, None), None),
    ],
)
def test_a_run_is_exhausted_only_by_the_number_of_this_very_page(
    start: int, returned: Returned, stop: StopReason | None
) -> None:
    assert rules.find_stop(Reading(start_index=start), returned, 1000, 10) is stop


def test_the_quota_goes_before_the_most_of_a_run_and_that_before_exhaustion() -> None:
    reading, last = Reading(start_index=0), page(40, 40)
    assert rules.find_stop(reading, last, 40, 0) is StopReason.QUOTA
    assert rules.find_stop(reading, last, 40, 1) is StopReason.MAX_PER_RUN
    assert rules.find_stop(reading, last, 41, 1) is StopReason.EXHAUSTED
