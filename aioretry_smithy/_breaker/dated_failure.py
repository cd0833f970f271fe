"""Report a failure of which it is known when it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._call.rounds import FailedAttempt
    from .breaker import CircuitBreaker
    from .state import CircuitPermit


def count_failure(
    breaker: CircuitBreaker, permit: CircuitPermit, failure: FailedAttempt
) -> None:
    """Report a failure of a known time, by the method that a subclass may have."""
    breaker._reported = failure
    try:
        breaker.on_failure(permit)
    finally:
        breaker._reported = None
