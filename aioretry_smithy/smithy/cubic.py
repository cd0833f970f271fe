"""The CUBIC formulas: how a send rate falls when throttled and rises again."""

from __future__ import annotations

import math

_BETA = 0.7
_SCALE = 0.4


def zero_point(max_rate: float, *, beta: float = _BETA) -> float:
    """Return the seconds from a throttling answer to the rate at which it came.

    ``K = cbrt(max_rate * (1 - beta) / 0.4)``

    Args:
        max_rate: The rate at which the server throttled last, per second, >= 0.
        beta: What is left of the rate after it, 0 to 1.

    Source: CUBIC (RFC 9438), as the AWS SDKs have it.

    >>> round(zero_point(10.0), 6)
    1.957434
    """
    return math.cbrt(max_rate * (1 - beta) / _SCALE)


def rate_after_throttling(rate: float, *, beta: float = _BETA) -> float:
    """Return the rate to go on with where *rate* was too much: ``beta * rate``.

    >>> rate_after_throttling(10.0)
    7.0
    """
    return rate * beta


def rate_after_success(
    elapsed: float, max_rate: float, *, beta: float = _BETA
) -> float:
    """Return the rate that may be tried some time after the last throttling answer.

    ``0.4 * (elapsed - K) ** 3 + max_rate``: it rises quickly at first, slowly around
    the rate that was too much, and ever more quickly beyond it.

    Args:
        elapsed: Seconds since the last throttling answer.
        max_rate: The rate at which it came, per second.
        beta: See :func:`zero_point`.

    >>> round(rate_after_success(0.0, 10.0), 6), round(rate_after_success(4.0, 10.0), 6)
    (7.0, 13.408697)
    """
    return _SCALE * (elapsed - zero_point(max_rate, beta=beta)) ** 3 + max_rate
