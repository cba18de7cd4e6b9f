"""The simulated world's only source of chance: the same words give the same luck."""

from random import Random

Chance = Random


def chance_of(*words: object) -> Chance:
    """Return the luck that belongs to these words, on every machine and in every run."""
    return Chance("/".join(map(str, words)))


def is_lucky(chance: Chance, share: float) -> bool:
    """Say yes in a share of all cases."""
    return chance.random() < share
