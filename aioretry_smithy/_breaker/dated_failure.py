"""Report an outcome to a circuit breaker, and when a failure was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._call.rounds import FailedAttempt

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
        breaker._reported = FailedAttempt.of(ctx.call, ctx.record, cause)
        try:
            breaker.on_failure(permit)
        finally:
            breaker._reported = None
