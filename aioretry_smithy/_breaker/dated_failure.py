"""Report an outcome to a circuit breaker, and when and how slow a failure was."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .._call.tries import FailedAttempt, is_slow

if TYPE_CHECKING:
    from .._call.call import Context
    from .breaker import CircuitBreaker
    from .state import CircuitPermit


def count(
    breaker: CircuitBreaker,
    permit: CircuitPermit,
    verdict: bool | None,
    ctx: Context,
    cause: Exception | None = None,
) -> None:
    """Report an outcome, by the methods that a subclass may have.

    Args:
        breaker: The circuit breaker.
        permit: What it gave for the request.
        verdict: Whether that succeeded; None gives the permit back.
        ctx: The context of the request.
        cause: What it failed with, or None when there is a response.
    """
    if verdict:
        breaker.on_success(permit)
    elif verdict is None:
        breaker.on_ignored(permit)
    else:
        call, record = ctx.call, ctx.record
        breaker._reported = FailedAttempt.of(call, record, cause)
        breaker._is_slow = partial(is_slow, call, record, cause)
        try:
            breaker.on_failure(permit)
        finally:
            breaker._reported = breaker._is_slow = None
