"""How far a run reads, and when it stops: pure decisions, in the order of their description."""

from dataclasses import replace

from mimawari.watches.books.models import MOST_A_PAGE, Reading, Returned, StopReason


def page_size(max_per_run: int, collected: int) -> int:
    """Tell how many to ask for: never more than are wanted."""
    return min(MOST_A_PAGE, max_per_run - collected)


def go_on(reading: Reading, returned: Returned) -> Reading:
    """Tell where a run stands after a page; volumes without an ISBN are not counted."""
    return replace(
        reading,
        start_index=reading.start_index + returned.volumes,
        collected=reading.collected + returned.with_isbn,
        page=reading.page + 1,
    )


def find_stop(
    reading: Reading, returned: Returned, max_per_run: int, calls_left: int
) -> StopReason | None:
    """Tell whether a run stops after a page, and why; `reading` is where it stood before."""
    if calls_left <= 0:
        return StopReason.QUOTA
    if go_on(reading, returned).collected >= max_per_run:
        return StopReason.MAX_PER_RUN
    return StopReason.EXHAUSTED if is_exhausted(reading.start_index, returned) else None


def is_exhausted(start_index: int, returned: Returned) -> bool:
    """Say whether there is nothing more, by the number that this very page told."""
    if returned.total_items is None:
        return False
    return not returned.volumes or start_index + returned.volumes >= returned.total_items
