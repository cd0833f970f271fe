"""Make what is compared in a simulation unless the caller says otherwise."""

from __future__ import annotations

from functools import partial

from .._session.builder import SessionBuilder
from .fleet import run_loop
from .plain_loop import PATIENCE


def standard_chain() -> SessionBuilder:
    """Make the standard chain."""
    return SessionBuilder.standard(attempt_timeout=PATIENCE, logging=None)


COMPARED = {"plain retries": partial(run_loop, 4), "no retries": partial(run_loop, 1)}
"""Put up to three retries without a budget, and none, through a simulation."""
