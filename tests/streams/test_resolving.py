"""What an answer means: only clean ones say that a stream is live or over, and two must agree."""

from datetime import timedelta

import pytest

from mimawari.sites.youtube import Answer, LiveStatus, Trouble
from mimawari.watches.streams import resolution
from mimawari.watches.streams.models import Source
from mimawari.watches.streams.resolution import Standing, heed
from tests.streams.scene import EVENING, at

MANIFEST = "https://origin.test/master.m3u8"
LIVE = Answer(live_status=LiveStatus.LIVE, manifest_url=MANIFEST, title="夜の配信")
OVER = Answer(live_status=LiveStatus.WAS_LIVE)
FOR_GOOD = (Trouble.PRIVATE, Trouble.REMOVED, Trouble.UNAVAILABLE)
SAYS_NOTHING = sorted({*Trouble} - {*FOR_GOOD, Trouble.UPCOMING})


def hear(*answers: Answer, source: Source | None = None) -> tuple[Source, list[Standing]]:
    """Hear some answers one after another, and tell how the stream stood after each."""
    source, standings = source or Source(), []
    for number, answer in enumerate(answers):
        source, standing = heed(source, answer, at(number))
        standings.append(standing)
    return source, standings


def refused(trouble: Trouble) -> Answer:
    """Make up an answer that says nothing."""
    return Answer(live_status=None, trouble=trouble, words="ERROR: [youtube] …")


@pytest.mark.parametrize("status", [one for one in LiveStatus if one.is_ended])
def test_two_agreeing_clean_answers_end_a_stream_and_one_does_not(status: LiveStatus) -> None:
    answer = Answer(live_status=status)
    assert hear(answer, answer)[1] == [Standing.ENDING, Standing.ENDED]


def test_two_clean_answers_agree_whichever_way_they_say_that_it_is_over() -> None:
    post = Answer(live_status=LiveStatus.POST_LIVE)
    assert hear(post, OVER)[1] == [Standing.ENDING, Standing.ENDED]


@pytest.mark.parametrize(
    "between", [LIVE, Answer(live_status=LiveStatus.UPCOMING), refused(Trouble.UPCOMING)]
)
def test_a_clean_answer_that_disagrees_begins_the_count_anew(between: Answer) -> None:
    standings = hear(OVER, between, OVER)[1]
    assert standings[0] == standings[2] == Standing.ENDING


@pytest.mark.parametrize("trouble", SAYS_NOTHING)
def test_7_2_who_is_refused_never_ends_a_stream(trouble: Trouble) -> None:
    source, standings = hear(*[refused(trouble)] * 20)
    assert set(standings) == {Standing.UNKNOWN}
    assert (source.failures, source.ends) == (20, 0)


@pytest.mark.parametrize("trouble", SAYS_NOTHING)
def test_an_answer_that_says_nothing_neither_agrees_nor_disagrees(trouble: Trouble) -> None:
    standings = hear(OVER, refused(trouble), OVER)[1]
    assert standings == [Standing.ENDING, Standing.UNKNOWN, Standing.ENDED]


@pytest.mark.parametrize("trouble", FOR_GOOD)
def test_7_2_a_video_that_nobody_will_see_again_is_gone_at_once(trouble: Trouble) -> None:
    assert hear(refused(trouble))[1] == [Standing.GONE]


@pytest.mark.parametrize(
    "answer", [Answer(live_status=LiveStatus.UPCOMING), refused(Trouble.UPCOMING)]
)
def test_7_2_a_stream_that_has_not_begun_is_upcoming_however_it_is_said(answer: Answer) -> None:
    source, standings = hear(refused(Trouble.NETWORK), answer)
    assert standings == [Standing.UNKNOWN, Standing.UPCOMING]
    assert source.failures == 0


def test_a_live_stream_is_asked_for_again_in_five_minutes_and_not_within_a_moment() -> None:
    source, standings = hear(LIVE)
    assert standings == [Standing.LIVE]
    assert (source.manifest_url, source.title) == (MANIFEST, "夜の配信")
    assert source.ask_at == at(300)
    assert not resolution.may_ask(source, at(14))
    assert resolution.may_ask(source, at(15))


def test_what_was_said_before_is_not_forgotten_by_an_answer_that_says_less() -> None:
    upcoming = Answer(live_status=LiveStatus.UPCOMING, release_at=at(900), title="夜の配信")
    source, _ = hear(upcoming, refused(Trouble.UPCOMING))
    assert (source.release_at, source.title) == (at(900), "夜の配信")


def test_an_address_is_good_for_as_long_as_it_says_and_renewed_ten_minutes_before() -> None:
    expire = int(at(21_600).timestamp())
    answer = Answer(live_status=LiveStatus.LIVE, manifest_url=f"{MANIFEST}?expire={expire}")
    source, _ = hear(answer)
    assert source.good_until == at(21_600)
    assert not resolution.is_expiring(source, at(20_999))
    assert resolution.is_expiring(source, at(21_000))


def test_an_address_that_says_nothing_of_it_is_good_for_five_hours() -> None:
    assert hear(LIVE)[0].good_until == EVENING + timedelta(hours=5)


def test_an_address_that_is_good_is_kept_and_one_that_runs_out_is_replaced() -> None:
    other = Answer(live_status=LiveStatus.LIVE, manifest_url="https://origin.test/other.m3u8")
    kept = Source(manifest_url=MANIFEST, list_url="https://origin.test/a", good_until=at(7200))
    assert heed(kept, other, EVENING)[0].list_url == "https://origin.test/a"
    renewed = heed(kept, other, at(7000))[0]
    assert (renewed.manifest_url, renewed.list_url) == (other.manifest_url, None)
