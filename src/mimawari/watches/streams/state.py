"""Writes what a monitor goes on from, and reads it again."""

from typing import Any

import structlog
from pydantic import TypeAdapter, ValidationError

from mimawari.watches.streams.models import Config, State

_STATE = TypeAdapter(State)
_CONFIG = TypeAdapter(Config)

log = structlog.get_logger(component="streams")


def write_state(state: State) -> str:
    """Write a state as text, without what is as it is at the start."""
    return _STATE.dump_json(state, exclude_defaults=True).decode()


def read_state(text: str) -> State:
    """Read a state, and raise ValidationError where it is none."""
    return _STATE.validate_json(text)


def parse_state(text: str) -> State:
    """Read a state; what another version wrote and nobody understands begins anew."""
    try:
        return read_state(text)
    except ValidationError as error:
        log.warning("state not understood", result="begins anew", reason=str(error)[:300])
        return State()


def write_config(config: Config) -> dict[str, Any]:
    """Write a configuration as it is kept: with everything that was decided when it was made."""
    written: dict[str, Any] = _CONFIG.dump_python(config, mode="json")
    return written


def dump_config(config: Config) -> str:
    """Write a configuration as text, without what is as usual."""
    return _CONFIG.dump_json(config, exclude_defaults=True).decode()


def parse_config(kept: object) -> Config:
    """Read a configuration as it was kept."""
    return _CONFIG.validate_python(kept)
