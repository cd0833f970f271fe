"""Check what all limits are told of a wait in their queue."""

from __future__ import annotations

from .._errors import bad_argument, is_finite


def check_timeout(seconds: float | None) -> None:
    """Refuse what is neither None nor the seconds of a longest wait."""
    if seconds is not None and not (is_finite(seconds) and seconds >= 0):
        raise bad_argument("timeout", seconds, "finite and >= 0, or None")
