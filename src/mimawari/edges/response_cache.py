"""Keeps answers for a while, and never one that is older than the last apply."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mimawari.ids import new_id
from mimawari.kernel.ports import Cache

M = TypeVar("M", bound=BaseModel)

KEPT_FOR = timedelta(minutes=10)


def fits_always(_kept: BaseModel) -> bool:
    """Return True: the key alone says what was asked for."""
    return True


async def find_or_make(
    cache: Cache,
    key: str,
    form: type[M],
    make: Callable[[], Awaitable[M]],
    fits: Callable[[M], bool] = fits_always,
) -> M:
    """Return what is kept under a key if it is what was asked for, or make and keep it."""
    kept = await cache.get(key)
    if kept is not None:
        # What another version of the program kept may have another form.
        with suppress(ValidationError):
            found = form.model_validate_json(kept)
            if fits(found):
                return found
    # A mark under the same beginning is dropped along with the answer: where ours is gone after
    # the answer was kept, something was applied while it was made, and it may be old.
    mark, mine = f"{key}:making", new_id().encode()
    await cache.set(mark, mine, KEPT_FOR)
    made = await make()
    await cache.set(key, made.model_dump_json().encode(), KEPT_FOR)
    if await cache.get(mark) != mine:
        await cache.drop(key)
    return made
