"""Keep a simulation and the program around it apart."""

from __future__ import annotations

import logging
import random
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def chance(seed: int, stream: int) -> random.Random:
    """Make a source of random numbers, a different one for each *stream*."""
    return random.Random(f"{seed} {stream}")


@contextmanager
def isolated(seed: int) -> Iterator[None]:
    """Seed the chance that all chains share, and log nothing, until the block ends."""
    state, disabled = random.getstate(), logging.root.manager.disable
    random.setstate(chance(seed, 2).getstate())
    logging.disable()
    try:
        yield
    finally:
        random.setstate(state)
        logging.disable(disabled)
