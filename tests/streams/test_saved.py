"""What a monitor goes on from is written and read again without a loss."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimawari.media.timeline import Place, Run
from mimawari.watches.streams.models import (
    Config,
    Fault,
    Reading,
    Sense,
    Source,
    State,
    Told,
    Window,
)
from mimawari.watches.streams.state import parse_config, parse_state, write_config, write_state
from tests.streams.scene import EVENING, at

MOMENTS = st.integers(0, 10**15).map(lambda us: EVENING + timedelta(microseconds=us))
SECONDS = st.floats(-1e9, 1e9, allow_nan=False)
TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
FAULTS = st.builds(Fault, since=MOMENTS, words=TEXT)
RUNS = st.builds(Run, start=SECONDS, until=SECONDS, seconds=SECONDS)
STATES = st.builds(
    State,
    source=st.builds(Source, title=st.none() | TEXT, ask_at=st.none() | MOMENTS),
    reading=st.builds(Reading, missed=SECONDS, new_at=st.none() | MOMENTS),
    place=st.builds(Place, end=SECONDS, offset=st.none() | SECONDS),
    anchor_at=st.none() | MOMENTS,
    runs=st.dictionaries(st.sampled_from(Sense), RUNS),
    told=st.dictionaries(st.sampled_from(Sense), st.builds(Told, started_at=MOMENTS)),
    fault=st.none() | FAULTS,
    is_delay_told=st.booleans(),
    is_encrypted_told=st.booleans(),
    started_at=st.none() | MOMENTS,
)


@given(STATES)
def test_a_state_is_read_as_it_was_written(state: State) -> None:
    assert parse_state(write_state(state)) == state


def test_a_state_as_it_is_at_the_start_takes_no_room() -> None:
    assert write_state(State()) == "{}"


@pytest.mark.parametrize(
    "text", ["", "[]", "null", "{", '{"reading": 1}', '{"runs": {"smell": {}}}', '{"fault": {}}']
)
def test_what_nobody_understands_begins_anew(text: str) -> None:
    assert parse_state(text) == State()


def test_what_another_version_has_beside_is_left_out() -> None:
    assert parse_state('{"is_delay_told": true, "mood": "good"}') == State(is_delay_told=True)


def test_a_configuration_is_read_as_it_was_kept() -> None:
    config = Config(
        scheduled_start_time=EVENING,
        quality="best",
        freeze_threshold_sec=60,
        maintenance=(Window(start=EVENING, end=at(60)),),
    )
    assert parse_config(write_config(config)) == config
