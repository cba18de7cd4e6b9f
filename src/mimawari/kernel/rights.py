"""Callers of the internal API and their rights."""

import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mimawari.kernel.ports import Reader
from mimawari.kernel.values import Limit

_POD_NAME = re.compile(rb"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls the internal API."""

    pod: str | None
    """The name of the pod; None is the holder of the installation's own key."""

    @property
    def name(self) -> str:
        """The name by which requests are counted."""
        return "installation" if self.pod is None else f"pod {self.pod}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRights:
    """The shared resources that the pods of a watch may use; all others are refused."""

    limits: tuple[Limit, ...]
    sites: frozenset[str]
    """The sites whose breakers they use."""
    cached: frozenset[str]
    """The keys of the cache that they read and write."""
    is_at_work: Callable[[Reader, str], Awaitable[bool]]
    """Return whether a pod has work; one that has none has no rights either."""


def make_token(key: bytes, pod: str) -> str:
    """Return the token of a pod: its name, and proof that the holder of the key made it."""
    return f"{pod}.{hmac.new(key, b'mimawari pod ' + pod.encode(), 'sha256').hexdigest()}"


def find_holder(key: bytes, given: bytes) -> Caller | None:
    """Return who holds a key or token; None if it is neither the key nor made with it."""
    if hmac.compare_digest(given, key):
        return Caller(None)
    name, _, _ = given.rpartition(b".")
    if not _POD_NAME.fullmatch(name):
        return None
    pod = name.decode("ascii")
    return Caller(pod) if hmac.compare_digest(given, make_token(key, pod).encode()) else None
