"""Knows colour bars, be they of SMPTE, EBU or ARIB: a pure decision on a tiny copy of a picture."""

from collections.abc import Sequence
from itertools import groupby

WIDTH, HEIGHT = 128, 12
"""How large the copy is, in RGB of 3 bytes."""
# Below them other signals stand, and above them there may be an edge.
_ROWS = range(1, 6)
_MOST_ODD_ROWS = 1
"""A line of writing may stand on the bars."""
_DARK = 45
"""Of 255: a colour without a part that is brighter is black."""
_OFF, _ON = 0.42, 0.6
"""Of a colour's brightest part: what is under the one is not in it, what is over the other is."""
_GREEN_COLUMN = 59
"""Here the green bar stands, whether there are seven or eight and however wide they are."""
_LEAST_COLUMNS = 5
"""What is narrower is where two bars meet."""
_LEAST_SHARE = 0.5
_MOST_UNEVEN = 1.7
_MOST_SPREAD = 48

BLACK, GREEN, WHITE = (False, False, False), (False, True, False), (True, True, True)
BARS = (
    WHITE,
    (True, True, False),
    (False, True, True),
    GREEN,
    (True, False, True),
    (True, False, False),
    (False, False, True),
)
"""From left to right, which of red, green and blue each bar is made of, however bright."""

Pixel = tuple[int, int, int]
Colour = tuple[bool, ...]


def has_bars(rows: Sequence[bytes]) -> bool:
    """Say whether the upper part of a picture is colour bars; `rows` are those of the tiny copy."""
    odd = sum(not _is_of_bars(rows[number]) for number in _ROWS)
    return odd <= _MOST_ODD_ROWS


def _is_of_bars(row: bytes) -> bool:
    pixels = list(zip(row[::3], row[1::3], row[2::3], strict=True))
    if _name_colour(pixels[_GREEN_COLUMN]) != GREEN:
        return False
    runs = _list_runs(pixels)
    # Beside the bars there may be grey or black, as where the picture is wider than they are.
    while runs and runs[0][0] == BLACK:
        runs.pop(0)
    while runs and runs[-1][0] in {BLACK, WHITE}:
        runs.pop()
    if tuple(colour for colour, _ in runs) != BARS:
        return False
    # How wide the white one is cannot be told from grey beside it.
    inner = [run for _, run in runs[1:]]
    widths = [len(run) for run in inner]
    is_wide = sum(widths) >= _LEAST_SHARE * len(pixels)
    is_even = max(widths) <= _MOST_UNEVEN * min(widths)
    return is_wide and is_even and all(map(_is_flat, inner))


def _list_runs(pixels: Sequence[Pixel]) -> list[tuple[Colour, list[Pixel]]]:
    """List the runs of one colour, but for those where two bars meet."""
    found = [(colour, list(run)) for colour, run in groupby(pixels, _name_colour)]
    return [
        (colour, run) for colour, run in found if colour is not None and len(run) >= _LEAST_COLUMNS
    ]


def _name_colour(pixel: Pixel) -> Colour | None:
    """Say what a colour is made of; None where it is not one of bars."""
    brightest = max(pixel)
    if brightest <= _DARK:
        return BLACK
    if any(_OFF * brightest <= part <= _ON * brightest for part in pixel):
        return None
    return tuple(part > _ON * brightest for part in pixel)


def _is_flat(run: Sequence[Pixel]) -> bool:
    # Towards its edges a bar may be mixed with its neighbours.
    edge = len(run) // 4
    inside = run[edge:-edge]
    return all(max(part) - min(part) <= _MOST_SPREAD for part in zip(*inside, strict=True))
