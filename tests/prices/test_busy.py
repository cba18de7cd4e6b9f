"""A busy product at two own pages a minute: what is told is really there."""

from datetime import timedelta
from pathlib import Path

from mimawari.sim.sites.mercari.items import FRANCHISES
from tests.conftest import Databases
from tests.prices.busy import Scale, Target, watch_and_judge

SOME_HOURS = Scale(
    targets=(Target(FRANCHISES[0], 50), Target(FRANCHISES[10], 20), Target(FRANCHISES[12], 90)),
    details_a_minute=2,
    span=timedelta(hours=2.5),
)


async def test_through_some_hours_nothing_is_told_that_is_gone_and_every_target_is_told(
    databases: Databases, tmp_path: Path
) -> None:
    judge = await watch_and_judge(SOME_HOURS, await databases.ready(), tmp_path)
    assert judge.wrong == []
    assert judge.alerts > 0
    assert judge.outside > 200
