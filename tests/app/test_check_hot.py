"""The check of the hot watch by the simulated market's truth: it passes, and it could fail."""

import pytest

from mimawari.app.judges.hot import MOST_TARGETS, Counted, check_hot, list_keywords, spearman
from mimawari.errors import BadInput
from tests.app.terminal import Terminal


async def test_every_count_is_what_the_pages_could_show() -> None:
    done: list[float] = []
    report = await check_hot(11, 0.4, 3, done.append)
    assert report.differing == 0, report.targets
    assert [one.keyword for one in report.targets] == list_keywords(3)
    assert 3 * 4 <= report.crawls <= 3 * 5
    assert report.requests > report.crawls * 2
    assert report.inflow == sum(one.true_inflow for one in report.targets) > 30
    assert report.outflow == sum(one.true_outflow for one in report.targets) > 15
    assert done == sorted(done)
    assert done[-1] == 1.0


def test_a_wrong_count_is_noticed() -> None:
    right = Counted(keyword="a", inflow=5, true_inflow=5, outflow=3, true_outflow=3)
    assert right.ok
    assert not Counted(keyword="a", inflow=4, true_inflow=5, outflow=3, true_outflow=3).ok
    assert not Counted(keyword="a", inflow=5, true_inflow=5, outflow=3, true_outflow=2).ok


@pytest.mark.parametrize(
    ("ours", "theirs", "alike"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),
        ([1, 1, 2], [1, 1, 2], 1.0),
        ([1, 1, 2], [1, 2, 3], 0.866),
        ([5, 5], [1, 2], 1.0),
        ([7], [3], 1.0),
    ],
)
def test_rankings_are_compared_by_their_ranks(
    ours: list[float], theirs: list[float], alike: float
) -> None:
    assert spearman(ours, theirs) == pytest.approx(alike, abs=0.001)


def test_there_are_searches_enough_and_each_once() -> None:
    assert len(set(list_keywords(MOST_TARGETS))) == MOST_TARGETS > 100
    assert list_keywords(30)[:14] == list_keywords(14)


@pytest.mark.parametrize("count", [0, -1, MOST_TARGETS + 1])
async def test_a_number_of_targets_that_there_are_not_is_refused(count: int) -> None:
    with pytest.raises(BadInput, match=f"from 1 to {MOST_TARGETS}"):
        await check_hot(1, 1, count, lambda _: None)


def test_the_command_tells_programs_how_it_went(terminal: Terminal) -> None:
    said = terminal.run_program("sim", "check", "hot", "--days", "0.1", "--targets", "1", "--json")
    found = said.json()
    assert found["ok"] is True
    assert (found["seed"], found["days"], found["differing"]) == (1, 0.1, 0)
