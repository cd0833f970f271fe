"""Amounts of tokens without rounding errors."""

from __future__ import annotations

from fractions import Fraction
from math import lcm

_FINEST = 10**9


def in_whole_units(*amounts: float) -> tuple[int, ...]:
    """Return one token, and amounts of tokens, as whole numbers of a common unit.

    So that ten times 0.1 is 1. An amount is taken for the fraction nearest to it whose
    denominator is at most a thousand million.

    Args:
        amounts: Tokens, finite and >= 0.

    >>> in_whole_units(0.1, 2.5)
    (10, 1, 25)
    """
    shares = [Fraction(amount).limit_denominator(_FINEST) for amount in (1, *amounts)]
    token = lcm(*(share.denominator for share in shares))
    return tuple(int(share * token) for share in shares)
