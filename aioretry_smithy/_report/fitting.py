"""Keep what is written within a number of bytes, and count what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


_MOST_MISSES: Final = 10
"""Pieces without room after which no more are written."""


class Fitted(NamedTuple):
    """The pieces that fit, in order, and the number of the others."""

    kept: list[str]
    left_out: int


def fitted(pieces: Iterable[Iterable[str]], most: int) -> Fitted:
    """Take of each piece the first form for which there is room, in turn.

    One that is too large leaves its room to those after it; after ten of them, the
    rest is not even looked at.

    Args:
        pieces: The most important one first; each in its forms, the best one first.
        most: How many bytes all that is kept may have together, in UTF-8.

    >>> fitted([["more than eight", "less"], ["twelve bytes"], ["four"]], 8)
    Fitted(kept=['less', 'four'], left_out=1)
    """
    kept, left_out = [], 0
    for forms in pieces:
        for form in forms if left_out < _MOST_MISSES else ():
            size = len(form.encode())
            if size <= most:
                kept.append(form)
                most -= size
                break
        else:
            left_out += 1
    return Fitted(kept, left_out)
