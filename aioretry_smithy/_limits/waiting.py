"""Check the time that requests may wait for a limit, and note that one did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .._clock import loop_time
from .._errors import bad_argument, is_finite

if TYPE_CHECKING:
    from .._call.call import Call

_AT_ONCE: Final = 1e-3
"""Seconds that a refusal without any wait may take."""


def note_queue(call: Call, started: float) -> None:
    """Note that a call stood in a queue since then, unless it was sent off at once.

    Retrying clients further out go by that.
    """
    if loop_time() - started > _AT_ONCE:
        call.has_queued = True


def check_timeout(seconds: float | None) -> None:
    """Refuse a bad time for which a request may wait."""
    if seconds is not None and not (is_finite(seconds) and seconds >= 0):
        raise bad_argument("timeout", seconds, "finite and >= 0, or None")
