"""Tell a good end from a bad one, whatever a strategy made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .facts import LogFacts


def ended_well(log: LogFacts) -> bool:
    """Say whether a call or an attempt ended without a failure, or was superseded."""
    return log._record.ended_well
