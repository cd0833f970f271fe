"""Bound a limit that adapts: its first, lowest and highest value."""

from __future__ import annotations

from dataclasses import dataclass

from .._errors import bad_argument, is_finite


@dataclass(frozen=True, slots=True, repr=False)
class Bounds:
    """The first, the lowest and the highest value of a limit.

    Raises:
        ValueError: *minimum* is no int >= 1, or the others are not above it in turn.
    """

    initial: float
    minimum: int
    maximum: float

    def __post_init__(self) -> None:
        minimum, maximum = self.minimum, self.maximum
        if type(minimum) is not int or minimum < 1:
            raise bad_argument("minimum", minimum, "an int >= 1")
        if not is_finite(maximum) or maximum < minimum:
            raise bad_argument("maximum", maximum, f"finite and >= minimum, {minimum}")
        if not is_finite(self.initial) or not minimum <= self.initial <= maximum:
            expected = f"from minimum, {minimum}, to maximum, {maximum}"
            raise bad_argument("initial", self.initial, expected)

    def clamp(self, limit: float) -> float:
        """Return what is nearest to *limit* within the bounds."""
        return min(max(limit, float(self.minimum)), float(self.maximum))

    def __repr__(self) -> str:
        low, high = self.minimum, self.maximum
        return f"initial={self.initial!r}, minimum={low!r}, maximum={high!r}"
