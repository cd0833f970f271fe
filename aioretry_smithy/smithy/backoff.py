"""Compute how long to wait before a retry, in Smithy's terms."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from .._clock import chance, to_be_pickled
from .._errors import bad_argument, is_finite
from .._values import extensible
from .interfaces import BackoffExhaustedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from .interfaces import RetryBackoffStrategy


# A chain of decorrelated delays has long forgotten how it began by then; the steps of
# a longer one would only cost time.
_LONGEST_CHAIN = 128


class ExponentialBackoffJitterType(Enum):
    """Choose the jitter of an exponential delay.

    With ``c = min(backoff_scale_value * 2 ** (n - 1), max_backoff)`` before retry *n*,
    and ``r`` drawn from [0, 1):
    """

    DEFAULT = 1
    """``(0.5 + 0.5 * r) * c``, known as equal jitter."""

    NONE = 2
    """``c``, no jitter at all."""

    FULL = 3
    """``r * c``."""

    DECORRELATED = 4
    """``d = min(backoff_scale_value + 3 * r * d, max_backoff)``, done *n* times.

    ``d`` is *backoff_scale_value* at the start, and each step draws its own ``r``.
    """


@extensible
@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentialRetryBackoffStrategy:
    """Computes delays that double, up to a limit, with jitter.

    It has no state, so one object serves any number of calls at once.

    Args:
        backoff_scale_value: Seconds before the first retry without jitter, >= 0.
        max_backoff: Limit in seconds, >= 0, applied before the jitter.
        jitter_type: The formula, see :class:`ExponentialBackoffJitterType`.
        random: Returns numbers in [0, 1).

    Raises:
        ValueError: An argument is not as described.

    Source: smithy-python. There ``DECORRELATED`` remembers the last delay of any call;
    here it is computed anew from the number of the retry.

    >>> backoff = ExponentialRetryBackoffStrategy(
    ...     backoff_scale_value=1, jitter_type=ExponentialBackoffJitterType.NONE
    ... )
    >>> [backoff.compute_next_backoff_delay(n) for n in (0, 1, 2, 3, 10)]
    [0.0, 1.0, 2.0, 4.0, 20.0]
    """

    backoff_scale_value: float = 0.025
    max_backoff: float = 20.0
    jitter_type: ExponentialBackoffJitterType = ExponentialBackoffJitterType.DEFAULT
    random: Callable[[], float] = field(default=chance, repr=False)

    def __post_init__(self) -> None:
        for name in ("backoff_scale_value", "max_backoff"):
            seconds = getattr(self, name)
            if not is_finite(seconds) or seconds < 0:
                raise bad_argument(name, seconds, "finite and >= 0")
        kind: object = self.jitter_type
        if not isinstance(kind, ExponentialBackoffJitterType):
            expected = "an ExponentialBackoffJitterType"
            raise bad_argument("jitter_type", kind, expected)
        if not callable(self.random):
            raise bad_argument("random", self.random, "a callable that returns [0, 1)")
        object.__setattr__(self, "random", to_be_pickled(self.random))

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        """Return the seconds to wait before an attempt.

        Args:
            retry_attempt: The number of the retry, from 1; 0 is the initial attempt,
                before which there is no wait.

        Raises:
            ValueError: *retry_attempt* is no integer >= 0.
        """
        check_retry_attempt(retry_attempt)
        if retry_attempt == 0:
            return 0.0
        if self.jitter_type is ExponentialBackoffJitterType.DECORRELATED:
            return self._decorrelated(retry_attempt)
        capped = self._capped(retry_attempt)
        if self.jitter_type is ExponentialBackoffJitterType.NONE:
            return capped
        if self.jitter_type is ExponentialBackoffJitterType.FULL:
            return self.random() * capped
        return (0.5 + 0.5 * self.random()) * capped

    def _capped(self, retry_attempt: int) -> float:
        try:
            delay = math.ldexp(self.backoff_scale_value, retry_attempt - 1)
        except OverflowError:
            return float(self.max_backoff)
        return min(delay, float(self.max_backoff))

    def _decorrelated(self, retry_attempt: int) -> float:
        scale, longest = float(self.backoff_scale_value), float(self.max_backoff)
        delay = scale
        for _ in range(min(retry_attempt, _LONGEST_CHAIN)):
            delay = min(scale + 3 * (self.random() * delay), longest)
        return delay


def check_backoff_strategy(name: str, value: object) -> None:
    """Refuse an argument that cannot compute delays."""
    method = getattr(value, "compute_next_backoff_delay", None)
    if isinstance(value, type) or not callable(method):
        expected = "an object with compute_next_backoff_delay(); see from_backoff()"
        raise bad_argument(name, value, expected)


def ask_for_delay(
    backoff_strategy: RetryBackoffStrategy,
    retry_attempt: int,
    error: Exception | None = None,
) -> float:
    """Ask a backoff strategy for a delay, and check the answer.

    Raises:
        BackoffExhaustedError: It has no further delay. Raised from *error*.
        ValueError: What it returned is no delay.
    """
    try:
        delay: object = backoff_strategy.compute_next_backoff_delay(retry_attempt)
    except BackoffExhaustedError as exhausted:
        raise exhausted from error
    if not is_finite(delay) or delay < 0:
        expected = "seconds, finite and >= 0"
        raise bad_argument("compute_next_backoff_delay", delay, expected)
    return float(delay)


def check_retry_attempt(
    value: object, least: int = 0, name: str = "retry_attempt"
) -> None:
    """Refuse a number of a retry that is none."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise bad_argument(name, value, f"an integer >= {least}")
