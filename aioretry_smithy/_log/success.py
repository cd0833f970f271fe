"""Tell a good end from a bad one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .facts import LogFacts


def ended_well(log: LogFacts) -> bool:
    """Say whether a call or an attempt ended well, whatever a strategy made of that."""
    if log.response_cause is not None:
        return log.superseded
    status = log.response_status
    # A function that has returned has no status.
    return log.duration is not None if status is None else status < 400
