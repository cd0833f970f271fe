"""Convert Smithy's backoff strategies to backoffs, and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._backoff.backoff import Backoff
from .._errors import bad_argument
from ..smithy.backoff import check_backoff_strategy, check_retry_attempt
from ..smithy.errors import BackoffExhaustedError

if TYPE_CHECKING:
    from ..smithy.interfaces import RetryBackoffStrategy


def to_backoff(backoff_strategy: RetryBackoffStrategy) -> Backoff:
    """Make a :class:`.Backoff` that waits as a backoff strategy of Smithy's does.

    ``next_delay(n)`` is ``compute_next_backoff_delay(n)``.

    Args:
        backoff_strategy: Any object with that method.

    Raises:
        ValueError: It has no such method, or is a class.

    >>> backoff = to_backoff(ExponentialRetryBackoffStrategy(random=lambda: 0.0))
    >>> backoff.next_delay(3)
    0.05
    """
    check_backoff_strategy("backoff_strategy", backoff_strategy)
    return _StrategyBackoff(backoff_strategy)


def from_backoff(backoff: Backoff) -> RetryBackoffStrategy:
    """Make a backoff strategy for Smithy's strategies out of a :class:`.Backoff`.

    ``compute_next_backoff_delay(n)`` is ``next_delay(n)``, and 0.0 for the initial
    attempt. When the backoff has no further delay, it raises
    :class:`BackoffExhaustedError`, and the call ends with its last outcome.

    Args:
        backoff: The backoff.

    Raises:
        ValueError: *backoff* is not a :class:`.Backoff`.

    >>> from_backoff(Backoff.fixed(0.5)).compute_next_backoff_delay(1)
    0.5
    """
    given: object = backoff
    if not isinstance(given, Backoff):
        raise bad_argument("backoff", given, "a Backoff")
    return _BackoffStrategy(backoff)


@dataclass(frozen=True, slots=True)
class _StrategyBackoff(Backoff):
    backoff_strategy: RetryBackoffStrategy

    def next_delay(self, num_attempts_so_far: int) -> float | None:
        check_retry_attempt(num_attempts_so_far, 1, "num_attempts_so_far")
        try:
            return self.backoff_strategy.compute_next_backoff_delay(num_attempts_so_far)
        except BackoffExhaustedError:
            return None

    def __repr__(self) -> str:
        return f"to_backoff({self.backoff_strategy!r})"


@dataclass(frozen=True, slots=True)
class _BackoffStrategy:
    backoff: Backoff

    def compute_next_backoff_delay(self, retry_attempt: int) -> float:
        check_retry_attempt(retry_attempt)
        if retry_attempt == 0:
            return 0.0
        delay = self.backoff.next_delay(retry_attempt)
        if delay is None:
            raise BackoffExhaustedError(f"no delay left after {retry_attempt} attempts")
        return delay

    def __repr__(self) -> str:
        return f"from_backoff({self.backoff!r})"
