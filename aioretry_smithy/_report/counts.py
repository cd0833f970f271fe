"""Finish counts: as whole numbers and as shares."""

from __future__ import annotations


def whole(value: float) -> float:
    """Return a count as an int, unless sampled lines made it a fraction."""
    near = round(value)
    return near if abs(value - near) < 1e-6 else round(value, 6)


def ratio(part: float, all_of_it: float) -> float:
    """Return a share; that of nothing is 0."""
    return part / all_of_it if all_of_it else 0.0
