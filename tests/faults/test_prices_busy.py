"""Busy products for a day and for a week: what is told is there, and all of it is asked after."""

from datetime import timedelta
from pathlib import Path

import pytest

from mimawari.sim.sites.mercari.items import FRANCHISES
from tests.conftest import Databases
from tests.faults.world import FULL
from tests.prices.busy import Scale, Target, watch_and_judge

TARGETS = (Target(FRANCHISES[0], 50), Target(FRANCHISES[10], 20), Target(FRANCHISES[12], 90))
DAY, WEEK = timedelta(days=1), timedelta(days=7)


@pytest.mark.skipif(not FULL, reason="takes minutes; MIMAWARI_FAULTS=full runs it")
@pytest.mark.parametrize(
    "scale",
    [
        Scale(targets=TARGETS, details_a_minute=2, span=DAY),
        Scale(targets=TARGETS, details_a_minute=10, span=WEEK, crowd=4),
    ],
    ids=["day", "week"],
)
async def test_what_is_told_is_there_and_all_is_asked_after_as_fast_as_the_limit_allows(
    databases: Databases, tmp_path: Path, scale: Scale
) -> None:
    judge = await watch_and_judge(scale, await databases.ready(), tmp_path)
    assert judge.wrong == []
    assert judge.alerts > 0
    assert judge.outside > 200
    # A whole round takes less than the time watched, so that the bound was put to the test.
    assert min(allowed for _, allowed in judge.ages) < scale.span
