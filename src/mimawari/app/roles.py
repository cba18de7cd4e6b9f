"""The parts of the system."""

from enum import StrEnum


class Role(StrEnum):
    """A part of the system that a process may play."""

    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    JANITOR = "janitor"
    DELIVERER = "deliverer"
    MONITOR = "monitor"
