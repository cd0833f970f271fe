"""Draw random numbers, other ones in each process."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable


dice: Final = random.random
"""Draws a number in [0, 1), for what is drawn often and is never pickled."""


def chance() -> float:
    """Return a number in [0, 1), as :func:`random.random` does.

    That one is a method: whoever pickles it pickles the state of its generator, and all
    copies then draw the same numbers. A function is pickled by its name.

    >>> 0 <= chance() < 1
    True
    """
    return random.random()


def to_be_pickled(given: Callable[[], float]) -> Callable[[], float]:
    """Return :func:`chance` in place of :func:`random.random`, else what is given."""
    return chance if given is random.random else given
